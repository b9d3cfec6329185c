"""A member of a consumer group: its beats, its slices, what it gives up and when (docs/protocol.md, 6.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from plimsoll.conformance.expected_state import EPOCH, publication
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import FULL, Scenario
from plimsoll.conformance.stage import Stage
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_name, slice_subscription
from plimsoll.core.protocol.wire import Token

JOINS = Rule("6.7", "GROUP_JOIN on the link to the head of the cluster")
AGAIN = Rule("6.7", "with a time after which to ask again")
OWNER = Rule("6.7", "with an owner epoch whose first number is the epoch of that assignment")
LIST = Rule("6.7", "whose list is the group's filter and `[slice.GROUP,=,NUMBER]`.")
FROM_PLACE = Rule("6.7", "the member attaches the slice, from `token` and `marks`")
GIVEN = Rule("6.7", "A *member* of a group takes slices of its stream")
MARKED = Rule("6.7", "and is marked for the application.")
STOPS = Rule("6.7", "the member gives its application nothing more of the slice, waits until what that has in hand is")
RELEASES = Rule("6.7", "and sends SLICE_RELEASED with the place behind the last item that is finished without a break.")
REPEATS = Rule("6.7", "but for a slice that it has released: then SLICE_RELEASED is repeated.")
BEATS = Rule("6.7", "with the places that have changed and, every other beat, the load.")
LEASE = Rule("6.7", "gives its application nothing more, drops its slices, and joins again.")
COUNTS = Rule("6.7", "the items that the application has finished since the assignment, up to `token`")

GROUP, MEMBER, SLICE = "readings", "worker-1", 3
DEFINITION: Final = msg.GroupDefinition("[class,=,'STOCK']", 10, "Modulo", "n")
BEAT_SECONDS, LEASE_SECONDS = 1.0, 4.0
FIRST_EPOCH: Final = 1_700_000_000_000_007
LEASE_DEADLINE_SECONDS: Final = 25.0


class GroupScript:
    """The brokers' side of one member with one slice. `is_answering`: whether its beats have answers.

    `given_up`: a place that it has said to be given up, and may say again by SLICE_RELEASED.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage, self.is_answering = stage, True
        self.given_up: msg.SlicePlace | None = None
        self.beats: list[msg.GroupBeat] = []
        self.attachment = -1
        stage.answering = self._answer

    def _answer(self, record: object) -> bool:
        if isinstance(record, msg.SliceReleased) and self.given_up is not None:
            return bool(_plain(record.place) == _plain(self.given_up))
        if not isinstance(record, msg.GroupBeat):
            return False
        self.beats.append(record)
        if self.is_answering:
            self.stage.head.say(msg.GroupBeatAnswer(GROUP, record.number))
        return True

    # -- the head

    def join(self) -> None:
        """From the order to GROUP_JOINED."""
        self.stage.order(do="join", group=GROUP, member=MEMBER)
        self.expect_join()
        self.joined()

    def expect_join(self, rule: Rule = JOINS, places: Sequence[msg.SlicePlace] = (), seconds: float = 12.0) -> None:
        found = self.stage.expect("h", msg.GroupJoin, rule, lambda one: one.group == GROUP, seconds)
        if found.member != MEMBER or [_plain(each) for each in found.places] != [_plain(each) for each in places]:
            raise RuleBrokenError(rule, f"GROUP_JOIN is {found}; {MEMBER} with the places {list(places)} was due")

    def joined(self) -> None:
        self.stage.head.say(msg.GroupJoined(GROUP, DEFINITION, BEAT_SECONDS, LEASE_SECONDS))

    def assign(self, epoch: int, position: int = 0, offset: int = 0, given_to: Token | None = None) -> None:
        """SLICE_ASSIGNED; the slice attaches at e1 from this place."""
        token, marks = ("h", EPOCH, position), [("h", EPOCH, offset)] if offset else []
        self.stage.head.say(msg.SliceAssigned(GROUP, SLICE, epoch, token, marks, given_to))
        name = slice_name(GROUP, SLICE)
        resume = self.stage.expect("e1", msg.Resume, FROM_PLACE, lambda one: one.subscriber == name)
        if resume.epoch[0] != epoch:
            raise RuleBrokenError(OWNER, f"RESUME has the owner epoch {resume.epoch}; the assignment has {epoch}")
        if (resume.token, list(resume.watermarks)) != (token, marks):
            text = f"RESUME is from {resume.token} and {list(resume.watermarks)}; {token} and {marks} were assigned"
            raise RuleBrokenError(FROM_PLACE, text)
        wanted = slice_subscription(GROUP, DEFINITION.filter, SLICE)
        if [item.text for item in resume.subscriptions] != [wanted]:
            raise RuleBrokenError(LIST, f"the list is {resume.subscriptions}; {wanted} was due")
        self.attachment = resume.attachment
        self.stage.brokers["e1"].say(
            msg.Resumed(resume.attachment, "h", EPOCH, position, None, False),
            msg.Suback(resume.attachment, resume.version, []),
        )

    def revoke(self, epoch: int) -> None:
        self.stage.head.say(msg.SliceRevoked(GROUP, SLICE, epoch))

    def expect_release(self, epoch: int, position: int, items: int, rule: Rule = RELEASES) -> None:
        place = self.stage.expect("h", msg.SliceReleased, rule).place
        wanted = msg.SlicePlace(SLICE, epoch, ("h", EPOCH, position), [("h", EPOCH, position)], True)
        if _plain(place) != _plain(wanted):
            raise RuleBrokenError(rule, f"the place is {place}; {wanted} was due")
        if place.counted not in (None, msg.SliceCount(items)):
            raise RuleBrokenError(COUNTS, f"{place.counted} is counted; the application has finished {items}")

    def expect_detach(self, rule: Rule) -> None:
        found = self.stage.expect("e1", msg.Detach, rule)
        if found.withdraw or found.attachments != [self.attachment]:
            raise RuleBrokenError(rule, f"DETACH is {found}; attachment {self.attachment} without `withdraw` was due")

    def expect_beat_at(self, position: int) -> None:
        """A beat has the place behind this position."""

        def is_there() -> bool:
            return any(place.token == ("h", EPOCH, position) for beat in self.beats for place in beat.places)

        self.stage.until(is_there, BEATS, f"no GROUP_BEAT has the place {position}")

    # -- items

    def deliver(self, *numbers: int) -> None:
        self.stage.brokers["e1"].say(*(msg.Deliver(self.attachment, publication(number)) for number in numbers))

    def expect_item(self, number: int, rule: Rule = GIVEN, *, is_redelivered: bool = False) -> None:
        fields = {"group": GROUP, "slice": SLICE, "seq": number}
        found = self.stage.expect_report("item", rule, **fields)
        if found.get("redelivered") is not is_redelivered:
            raise RuleBrokenError(MARKED, f"item {number} is reported {found}; redelivered is {is_redelivered}")

    def none_is_given(self, number: int, rule: Rule) -> None:
        self.stage.quiet()
        if any(each.get("event") == "item" and each.get("seq") == number for each in self.stage.reports):
            raise RuleBrokenError(rule, f"the application has been given item {number}")

    def acknowledge(self) -> None:
        """The application has finished what it has in hand."""
        self.stage.order(do="acknowledge", group=GROUP)


def _plain(place: msg.SlicePlace) -> tuple[Any, ...]:
    """A place without what is counted."""
    return place.number, place.epoch, place.token, list(place.marks), place.is_released, place.was_cut_off


def join(stage: Stage) -> None:
    """A head that is starting, then beats, a slice, and two items."""
    g = GroupScript(stage)
    stage.order(do="join", group=GROUP, member=MEMBER)
    g.expect_join()
    stage.head.say(msg.GroupRefused(GROUP, "starting", "h is starting", 0.5))
    g.expect_join(AGAIN)
    g.joined()
    g.assign(FIRST_EPOCH)
    g.deliver(1, 2)
    for number in (1, 2):
        g.expect_item(number)
        g.acknowledge()
    g.expect_beat_at(2)
    stage.finish()


def revoked(stage: Stage) -> None:
    """SLICE_REVOKED while the application has an item in hand, and another one waits."""
    g = GroupScript(stage)
    g.join()
    g.assign(FIRST_EPOCH)
    g.deliver(1, 2)
    g.expect_item(1)
    g.revoke(FIRST_EPOCH)
    stage.quiet()
    stage.forbid("h", msg.SliceReleased, STOPS, "SLICE_RELEASED has come while an item is in hand")
    g.acknowledge()
    g.expect_release(FIRST_EPOCH, 1, items=1)
    g.expect_detach(RELEASES)
    g.none_is_given(2, STOPS)
    g.revoke(FIRST_EPOCH)  # as if SLICE_RELEASED were lost
    g.expect_release(FIRST_EPOCH, 1, items=1, rule=REPEATS)
    stage.finish()


def reassigned(stage: Stage) -> None:
    """A slice of a member that has gone: what that may have been given is marked."""
    g = GroupScript(stage)
    g.join()
    g.assign(FIRST_EPOCH, position=1, offset=1, given_to=("h", EPOCH, 2))
    g.deliver(2, 3)
    g.expect_item(2, is_redelivered=True)
    g.acknowledge()
    g.expect_item(3)
    g.acknowledge()
    g.expect_beat_at(3)
    stage.finish()


def lease(stage: Stage) -> None:
    """Beats without an answer: it stops by itself, and says what it had."""
    g = GroupScript(stage)
    g.join()
    g.assign(FIRST_EPOCH, position=1, offset=1)
    g.deliver(2, 3)
    g.expect_item(2)
    g.is_answering = False
    cut_off = msg.SlicePlace(SLICE, FIRST_EPOCH, ("h", EPOCH, 1), [("h", EPOCH, 1)], True, True)
    g.expect_join(LEASE, [cut_off], LEASE_DEADLINE_SECONDS)
    g.expect_detach(LEASE)
    g.acknowledge()
    g.none_is_given(3, LEASE)
    g.is_answering, g.given_up = True, cut_off
    g.joined()
    stage.finish()


SCENARIOS = (
    Scenario("group-join", "6.7", "a member, its slice, its beats", join, FULL),
    Scenario("slice-revoked", "6.7", "SLICE_REVOKED with an item in hand", revoked, FULL),
    Scenario("slice-reassigned", "6.7", "a slice of a member that has gone", reassigned, FULL),
    Scenario("group-lease", "6.7", "beats without an answer", lease, FULL),
)
