"""What a head tells clients that publish: at their first publisher, at each change, and never more than it may."""

from __future__ import annotations

from typing import Any

from tests.core.group_play import GROUP, GroupPlay, definition

from plimsoll.core.head.groups.definition import Declared
from plimsoll.core.head.groups.function_notices import GROUPS_AT_MOST, NOTICE_SECONDS, TEXT_AT_MOST, FunctionNotices
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER, Link


class Host:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.now = 0.0
        self.said: list[tuple[Any, Any]] = []

    def say(self, link: Link, record: Any) -> None:
        self.said.append((link, record))


LINK: Any = object()


def names(host: Host) -> list[list[str]]:
    return [[each.group for each in record.groups] for _, record in host.said]


def test_a_client_is_told_at_its_first_publisher_and_at_each_change():
    host = Host()
    notices = FunctionNotices(host)
    notices.tell(LINK)
    notices.change({"g": definition()})
    notices.tell_all(lambda: [LINK])
    notices.tell(LINK)
    notices.tell_all(lambda: [LINK])
    assert names(host) == [["g"]]
    notices.change({})
    host.now += NOTICE_SECONDS
    notices.tell_all(lambda: [LINK])
    assert names(host) == [["g"], []], "that the last group has gone is said, too"


def test_many_changes_are_told_together_once_a_second():
    host = Host()
    notices = FunctionNotices(host)
    assert notices.wake_at() == NEVER
    for number in range(200):
        notices.change({f"g{each}": definition() for each in range(number + 1)})
        notices.tell_all(lambda: [LINK])
        host.now += NOTICE_SECONDS / 128
    assert [len(each) for each in names(host)] == [1, 129]
    assert notices.wake_at() == 2 * NOTICE_SECONDS
    host.now = notices.wake_at()
    notices.tell_all(lambda: [LINK])
    assert len(names(host)[-1]) == 200
    assert notices.wake_at() == NEVER


def test_without_groups_nothing_is_said_and_a_link_that_is_over_is_forgotten():
    host = Host()
    notices = FunctionNotices(host)
    notices.tell(LINK)
    notices.lost(LINK)
    notices.lost(LINK)
    assert host.said == []
    assert notices._told == {}


def test_a_message_is_bounded():
    host = Host()
    notices = FunctionNotices(host)
    notices.change({f"g{number:04}": definition() for number in range(GROUPS_AT_MOST + 5)})
    notices.tell(LINK)
    assert len(host.said[0][1].groups) == GROUPS_AT_MOST
    long = msg.GroupDefinition("[a,=,'" + "x" * 4000 + "']", 4, "Publisher")
    notices.change({f"g{number:04}": long for number in range(GROUPS_AT_MOST)})
    notices.tell(LINK)
    assert sum(len(each.definition.filter) for each in host.said[1][1].groups) <= TEXT_AT_MOST


def test_a_definition_that_changes_reaches_publishers_that_run():
    play = GroupPlay(count=4)
    play.join("a")
    play.run(1.0)
    play.publish(3)
    play.run(0.2)
    head = play.fleet.head()
    play.leave("a")
    play.run(1.0)
    by_hash = definition(4, function="Hash")
    head.group_declarations.declare([Declared("h", GROUP, by_hash)])
    play.definition = by_hash
    play.run(0.2)
    for sensor in range(8):
        play.publish(sensor)
    play.join("b")
    play.check()
    stamps = head.groups.stamps
    assert (stamps.confirmed[GROUP], stamps.corrected[GROUP]) == (9, 0)


def test_links_are_looked_for_after_a_change_alone():
    """A head asks in each round, and may have many publishers."""
    notices, looks = FunctionNotices(Host()), list[int]()

    def links() -> list[Link]:
        looks.append(1)
        return [LINK]

    for _ in range(3):
        notices.tell_all(links)
    assert looks == []
    notices.change({"g": definition()})
    for _ in range(3):
        notices.tell_all(links)
    assert looks == [1]


def test_the_first_change_is_due_at_a_time_that_a_broker_can_wait_for():
    notices = FunctionNotices(Host())
    assert notices.wake_at() == NEVER
    notices.change({"g": definition()})
    assert 0.0 <= notices.wake_at() <= notices.host.now
