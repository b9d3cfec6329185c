"""The source of a hand-over by replay: it closes at once, ahead of all that is queued."""

from __future__ import annotations

import pytest
from tests.core.edge.handover.source_stage import BIG, delivered, served
from tests.core.fleet import Mediator, resume
from tests.core.head.handover.script import S, Stage, members

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.protocol import messages as msg


def revoke(stage: Stage, *items: msg.MemberItem, epoch: int = 0) -> None:
    record = msg.Revoke(S, epoch or stage.head.epoch, list(items) or members("x"), "b", "mem://b", "")
    stage.head.say_control(stage.head.control_of["a"], record)
    stage.run()


def test_revoke_closes_ahead_of_what_the_link_still_has():
    stage = served(window_bytes=3000)
    stage.run(1.2)
    stage.fleet.freeze("c")
    stage.publish("a", count=2, size=BIG)
    stage.publish("a", count=3)
    assert sum(record[:2] == b"\x93\x03" for record in stage.record("a").link.buffer) == 6
    revoke(stage)
    assert stage.state("a") == "closed"
    assert len(stage.edge("a").subscription_table.cover) == 1
    stage.fleet.thaw("c")
    stage.publish("a")
    assert delivered(stage) == [1, 2]
    assert delivered(stage, 2) == [1, 2, 3, 4, 5, 6]
    assert stage.said("a", msg.Moved) == [msg.Moved([1], "b", "mem://b", "", S)]
    heard = [type(record) for record in stage.client.heard["a"] if isinstance(record, msg.Deliver | msg.Moved)]
    assert heard == [*[msg.Deliver] * 4, msg.Moved, *[msg.Deliver] * 4]
    stage.tell("a", msg.Release("x", (1, 4)))
    assert stage.state("a") == ""


def test_revoke_drops_the_queue_and_is_heeded_once():
    stage = served(queue_bytes=50_000)
    stage.run(1.2)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    revoke(stage, *members("x", "w"))
    revoke(stage, *members("x", "w"))
    assert [moved.attachments for moved in stage.said("a", msg.Moved)] == [[1, 2]]
    assert delivered(stage) == []
    assert stage.edge("a").index.match({"class": "STOCK"}) == []


def test_revoke_of_another_epoch_is_not_heeded():
    stage = served()
    stage.run(1.2)
    revoke(stage, epoch=99)
    revoke(stage, *members("x", n=1), *members("w", n=4))
    assert stage.said("a", msg.Moved) == []
    assert stage.state("a") == stage.state("a", "w") == "live"


def test_only_the_head_may_revoke():
    stage = served()
    mediator: Mediator = stage.fleet.mediator("a")
    stage.run()
    mediator.say_control("a", msg.Revoke(S, stage.head.epoch, members("x"), "b", "mem://b", ""))
    stage.run()
    assert stage.state("a") == "live"


def test_revoke_overtakes_what_waits_for_a_slow_server():
    stage = Stage(hardware={"a": BrokerHardware(emulation=HardwareEmulation(base_seconds=0.05))})
    stage.attach("x")
    stage.run(1.2)
    stage.publish("a", count=9)
    revoke(stage)
    assert stage.state("a") == "closed"
    stage.run(1.0)
    assert len(delivered(stage)) < 4


@pytest.mark.parametrize("state", ["resuming", "catchup", "blocked"])
def test_revoke_reaches_those_that_are_behind(state: str):
    stage = Stage()
    stage.run(1.2)
    stage.publish("a", count=5)
    if state == "blocked":
        stage.ask("a", resume(1, "x", n=2, slow="block", queue_bytes=500), msg.Pause(1))
        stage.publish("a", count=5, size=BIG)
    else:
        stage.head.answers, stage.head.fetches = state == "catchup", False
        stage.ask("a", resume(1, "x", n=2, token=("h", 100, 1)))
    assert stage.state("a") == state
    revoke(stage)
    assert stage.state("a") == "closed"
    assert [moved.session for moved in stage.said("a", msg.Moved)] == [S]
    assert len(stage.edge("a").cursor) == 0
