"""Subscribing: finding an edge, attaching, the list of subscriptions, leaving (docs/protocol.md, 6.1 and 6.2)."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.conformance.expected_state import EPOCH
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import FULL, Scenario
from plimsoll.conformance.stage import Stage
from plimsoll.conformance.subscriber_script import SubscriberScript
from plimsoll.core.protocol import messages as msg

RETRY = Rule("6.1", "ask again after `retry_seconds`.")
JOIN_HEAD = Rule("6.1", "so a subscriber with a token asks for an edge of the head that the token")
GAP = Rule("6.3", "positions `low` to `high` of this head's log may hold")
SUBS = Rule("6.2", "**SUBS** changes the list: a higher `version`")
COUNTS = Rule("6.2", "**SUBACK** `(version, unreached)`")
LEAVES = Rule("6.2", "**DETACH** with `withdraw` ends the subscriber")
KEEPS_PLACE = Rule("6.2", "without, its place is kept for its lease")
VOID = Rule("6.2", "every earlier SUBACK is")

UNREACHABLE = Rule("6.1", "**JOIN** on a link to a head asks for an edge, not one of `exclude` if another is left")
LINK_REFUSED = Rule("3.1", "**REFUSE** answers a HELLO that is not admitted")
ONE_REFUSED = Rule(
    "6.2",
    "options out of bounds) are answered by **SUB_REFUSED** one by one; the others count.",
)

LATENCY = Rule("6.2", "The option `latency_seconds` of a subscription")
TRAVELS = Rule("6.2", "It travels with")

UNREACHABLE_SECONDS = 40.0
WANTED_SECONDS = 0.25
HIGH = "[high,>,25.0]"
STOCK_SUBSCRIPTION = "[class,=,'STOCK']"


def attach(stage: Stage) -> None:
    """JOIN, PLACED, RESUME from now on, SUBACK, deliveries."""
    x = SubscriberScript(stage)
    x.subscribe()
    x.expect_resume("e1")
    stage.quiet()
    if any(report.get("event") == "counts" for report in stage.reports):
        raise RuleBrokenError(COUNTS, "the subscription was reported to count before SUBACK")
    x.answer(position=10)
    stage.expect_report("counts", COUNTS, subscriber="s", subscription=STOCK_SUBSCRIPTION)
    x.deliver(11, 12)
    x.deliver(13)
    x.finish()


def no_edge_yet(stage: Stage) -> None:
    """The head has no edge, twice: the client asks again, not sooner than it was told."""
    stage.unplaced = [0.6, 0.6]
    x = SubscriberScript(stage).attach()
    waits = [later - earlier for earlier, later in zip(stage.joined_at, stage.joined_at[1:], strict=False)]
    if len(waits) < 2 or min(waits[:2]) < 0.5:
        raise RuleBrokenError(RETRY, f"JOIN came again after {waits} s; 0.6 s was asked for")
    x.deliver(1)
    x.finish()


def goes_on_from_token(stage: Stage) -> None:
    """The application has stored a token and watermarks: the first RESUME has them, and JOIN names the head."""
    x = SubscriberScript(stage, token=("h", EPOCH, 40), watermarks=[("h", EPOCH, 40), ("k", 5, 7)])
    x.attach()
    if stage.joins[0].head != "h":
        raise RuleBrokenError(JOIN_HEAD, f"JOIN asks for an edge of {stage.joins[0].head!r}; the token names h")
    x.deliver(41)
    x.finish()


def resumed_with_gap(stage: Stage) -> None:
    """RESUMED reports a gap and a lapse: the gap is reported, every SUBACK is void until the next."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.check_items()
    stage.expect_report("counts", COUNTS, subscriber="s")
    x.close("head")
    x.expect_resume("e1")
    stage.reports.clear()
    gap = msg.Gap("h", EPOCH, 2, EPOCH, 20, [("h", EPOCH, 18)], "lapsed")
    x.answer(gap=gap, position=20, lapsed=True, suback=False)
    stage.expect_items(x.state.items, GAP)
    x.broker.say(msg.Suback(x.number, x.state.version, []))
    stage.expect_report("counts", VOID, subscriber="s")
    x.deliver(21)
    x.finish()


def list_changed(stage: Stage) -> None:
    """A second subscription: SUBS with a higher version, and RESUME has the whole list from then on."""
    x = SubscriberScript(stage).attach()
    stage.order(do="subscribe", subscriber="s", subscription=HIGH)
    subs = stage.expect("e1", msg.Subs, SUBS)
    if subs.attachment != x.number or subs.version <= x.state.version or [one.text for one in subs.adds] != [HIGH]:
        raise RuleBrokenError(SUBS, f"SUBS of attachment {x.number} behind version {x.state.version} is {subs}")
    x.state.subscriptions.append(HIGH)
    x.state.version = subs.version
    x.broker.say(msg.Suback(x.number, subs.version, []))
    stage.expect_report("counts", COUNTS, subscriber="s", subscription=HIGH)
    x.close("head")
    x.resume_at("e1")
    x.deliver(1)
    x.finish()


def leaves(stage: Stage) -> None:
    """The application ends one subscriber, and closes another that will come back."""
    for withdraw in (True, False):
        x = SubscriberScript(stage, name="stays" if not withdraw else "s").attach()
        stage.order(do="close", subscriber=x.name, withdraw=withdraw)
        detach = stage.expect("e1", msg.Detach, LEAVES)
        if detach.attachments != [x.number] or detach.withdraw != withdraw:
            rule = LEAVES if withdraw else KEEPS_PLACE
            raise RuleBrokenError(rule, f"DETACH is {detach}; attachment {x.number}, withdraw {withdraw} was due")
    stage.finish()


def edge_unreachable(stage: Stage) -> None:
    """The edge that PLACED names never answers HELLO: JOIN again, and go where that leads."""
    stage.brokers["e1"].faults.is_silent = True
    stage.placement = ["e1", "e2"]
    x = SubscriberScript(stage)
    x.subscribe()
    stage.until(lambda: len(stage.joins) > 1, UNREACHABLE, "no second JOIN has come", UNREACHABLE_SECONDS)
    x.resume_at("e2")
    x.deliver(1)
    x.finish()


def link_refused(stage: Stage) -> None:
    """The edge refuses the link, as one that is leaving: JOIN again, and go where that leads."""
    stage.brokers["e1"].faults.links_refused = True
    stage.placement = ["e1", "e2"]
    x = SubscriberScript(stage)
    x.subscribe()
    stage.until(lambda: len(stage.joins) > 1, LINK_REFUSED, "no second JOIN has come", UNREACHABLE_SECONDS)
    x.resume_at("e2")
    x.deliver(1)
    x.finish()


def subscription_refused(stage: Stage) -> None:
    """One of two subscriptions is refused: the other counts, and the list has it alone from then on."""
    x = SubscriberScript(stage).attach()
    stage.order(do="subscribe", subscriber="s", subscription=HIGH)
    subs = stage.expect("e1", msg.Subs, SUBS)
    x.state.version = subs.version
    x.broker.say(msg.SubRefused(x.number, subs.version, subs.adds[0].id, "column 4: expected an operator"))
    stage.quiet("e1")
    if any(report.get("subscription") == HIGH and report.get("event") == "counts" for report in stage.reports):
        raise RuleBrokenError(ONE_REFUSED, "a subscription that was refused was reported to count")
    x.deliver(1)
    x.check_items()
    x.close("head")
    x.expect_resume("e1", rule=ONE_REFUSED)
    x.answer()
    x.finish()


def latency_required(stage: Stage) -> None:
    """A subscription with a latency: SUBS has it as an option, and so has every RESUME from then on."""
    x = SubscriberScript(stage).attach()
    stage.order(do="subscribe", subscriber="s", subscription=HIGH, latency=WANTED_SECONDS)
    subs = stage.expect("e1", msg.Subs, SUBS)
    _check_latency(subs.adds, LATENCY)
    x.state.subscriptions.append(HIGH)
    x.state.version = subs.version
    x.broker.say(msg.Suback(x.number, subs.version, []))
    stage.expect_report("counts", COUNTS, subscriber="s", subscription=HIGH)
    x.close("head")
    resume = x.resume_at("e1")
    _check_latency([one for one in resume.subscriptions if one.text == HIGH], TRAVELS)
    x.deliver(1)
    x.finish()


def _check_latency(given: Sequence[msg.SubscriptionItem], rule: Rule) -> None:
    found = [one.options.get("latency_seconds") for one in given]
    if found != [WANTED_SECONDS]:
        raise RuleBrokenError(rule, f"`latency_seconds` of {HIGH} is {found}; it should be {WANTED_SECONDS}")


SCENARIOS = (
    Scenario("attach", "6.2", "from JOIN to deliveries", attach),
    Scenario("no-edge-yet", "6.1", "UNPLACED, twice", no_edge_yet),
    Scenario("token", "6.2", "RESUME from a stored token", goes_on_from_token),
    Scenario("lapsed", "6.2", "RESUMED with a gap and `lapsed`", resumed_with_gap),
    Scenario("list-changed", "6.2", "SUBS", list_changed),
    Scenario("edge-unreachable", "6.1", "the edge of PLACED does not answer", edge_unreachable),
    Scenario("link-refused", "3.1", "the edge of PLACED refuses the link", link_refused),
    Scenario("subscription-refused", "6.2", "SUB_REFUSED", subscription_refused),
    Scenario("latency-required", "6.2", "a subscription with `latency_seconds`", latency_required, FULL),
    Scenario("leaves", "6.2", "DETACH, with and without `withdraw`", leaves),
)
