"""The stage: it answers JOIN, waits with a deadline, and compares what the application was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.conformance.raw_client import LINK, RawClient, data, hello

from plimsoll.conformance.client_under_test import ClientInput
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.stage import FRAMES_AT_MOST, Stage
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

RULE = Rule("6.3", "of the test")
FIRST, SECOND = ("delivery", "feed", 7, 1), ("delivery", "feed", 7, 2)


@pytest.fixture
def client() -> RawClient:
    return RawClient()


@pytest.fixture
def stage(client: RawClient) -> Stage:
    return Stage(client)


def given(client: RawClient, number: int) -> None:
    client.report({"event": "delivery", "subscriber": "s", "publisher": "feed", "incarnation": 7, "seq": number})


def test_join_is_answered_as_the_scenario_says(client: RawClient, stage: Stage):
    stage.unplaced, stage.placement = [0.5], ["e2", "e3"]
    client.frames("h", hello(), *(data(number, msg.Join("s")) for number in (1, 2, 3, 4)))
    stage.step()
    records = [
        msg.to_client.decode(raw) for _, frame in client.sent if isinstance(frame, wire.Data) for raw in frame.records
    ]
    assert [type(record) for record in records] == [msg.Unplaced, msg.Placed, msg.Placed, msg.Placed]
    assert [record.edge for record in records[1:] if isinstance(record, msg.Placed)] == ["e2", "e3", "e3"]
    assert len(stage.joins) == len(stage.joined_at) == 4


def test_a_record_is_waited_for_and_others_stay(client: RawClient, stage: Stage):
    client.frames("e1", hello(), data(1, msg.Pause(1), msg.Continue(2)))
    assert stage.expect("e1", msg.Continue, RULE) == msg.Continue(2)
    assert [received.record for received in stage.brokers["e1"].inbox] == [msg.Pause(1)]
    with pytest.raises(RuleBrokenError, match=r"no GO has come to e1 within 12 s"):
        stage.expect("e1", msg.Go, RULE)
    assert 12.0 <= client.time < 13.0


def test_deadlines_are_longer_with_patience(client: RawClient):
    stage = Stage(client, patience=3.0)
    with pytest.raises(RuleBrokenError, match="within 36 s"):
        stage.expect("e1", msg.Go, RULE)
    assert 36.0 <= client.time < 37.0


def test_a_client_that_ends_breaks_a_rule(client: RawClient, stage: Stage):
    client.coming = ClientInput(exit_code=3, errors="it has no head")
    with pytest.raises(RuleBrokenError, match="exit code 3: it has no head"):
        stage.step()


def test_a_flood_of_frames_breaks_a_rule(client: RawClient, stage: Stage):
    client.frames("h", *[wire.who_frame()] * (FRAMES_AT_MOST + 1))
    with pytest.raises(RuleBrokenError, match="more than"):
        stage.step()


def test_quiet_waits_for_the_pong(client: RawClient, stage: Stage):
    client.frames("e1", hello())
    stage.step()
    with pytest.raises(RuleBrokenError, match="no PONG has come to e1"):
        stage.quiet()


def test_quiet_takes_what_comes_meanwhile(client: RawClient, stage: Stage):
    client.frames("e1", hello())
    stage.step()
    client.frames("e1", data(1, msg.Pause(1)), wire.pong_frame(LINK, 1_000_000))
    stage.quiet("e1")
    stage.forbid("e1", msg.Continue, RULE, "it came")
    with pytest.raises(RuleBrokenError, match=r"it came: PAUSE\(1\)"):
        stage.forbid("e1", msg.Pause, RULE, "it came")


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ([1], "has not been given"),
        ([2, 1], "item 1 of the application is"),
        ([1, 1], "item 2 of the application is"),
        ([1, 2, 2], "nothing more was due"),
    ],
)
def test_items_that_are_not_those_due(client: RawClient, stage: Stage, numbers: list[int], found: str):
    for number in numbers:
        given(client, number)
    with pytest.raises(RuleBrokenError, match=found):
        stage.expect_items([FIRST, SECOND])


def test_items_that_are_due(client: RawClient, stage: Stage):
    given(client, 1)
    client.report({"event": "gap", "subscriber": "s", "reason": "log"})
    stage.expect_items([FIRST, ("gap", "log")])


def test_reports_are_waited_for(client: RawClient, stage: Stage):
    client.report({"event": "counts", "subscriber": "s", "subscription": "x"})
    assert stage.expect_report("counts", RULE, subscriber="s")["subscription"] == "x"
    with pytest.raises(RuleBrokenError, match="has not reported counts"):
        stage.expect_report("counts", RULE, subscriber="t")


def test_the_end_is_in_good_order(client: RawClient, stage: Stage):
    client.coming = ClientInput()
    client.frames("e1", hello(), data(1, msg.Subs(1, 2, [], [])))
    client.frames("e1", wire.pong_frame(LINK, 1_000_000))
    stage.step()
    client.frames("e1", wire.pong_frame(LINK, 1_000_000))
    with pytest.raises(RuleBrokenError, match=r"the client has also sent e1: SUBS\(1, 2"):
        stage.finish()


@pytest.mark.parametrize(("code", "found"), [(1, "exit code 1"), (None, "has not ended within 12 s")])
def test_a_client_must_stop(client: RawClient, stage: Stage, code: int | None, found: str):
    def stop(order: Mapping[str, Any]) -> None:
        client.coming = ClientInput(exit_code=code)

    client.order = stop
    with pytest.raises(RuleBrokenError, match=found):
        stage.finish()
