"""The dialogues of the vectors, played with the client machine: it says its part, and holds the state given there."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.conformance.memory_client import MemoryClient
from tests.vectors import make

from plimsoll.conformance.rules import Rule
from plimsoll.conformance.stage import Stage
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

DIALOGUES = json.loads((make.HERE / "dialogues.json").read_text())
RULE = Rule("6.4", "the dialogue")
STOCK = "[class,=,'STOCK']"


def first_delivery() -> msg.Deliver:
    """Offset 1, with which each dialogue begins."""
    return msg.Deliver(1, msg.PubOpen(1, "h", 11, 1, "p", 7, 1, 0, 0, msg.Body({"class": "STOCK"})))


@pytest.fixture
def client() -> MemoryClient:
    return MemoryClient()


@pytest.fixture
def stage(client: MemoryClient) -> Stage:
    """The subscriber at e1, as attachment 1 with owner epoch (7, 2), behind offset 1."""
    made = Stage(client)
    made.order(do="subscribe", subscriber="s", subscription=STOCK)
    resume = made.expect("e1", msg.Resume, RULE)
    made.brokers["e1"].say(msg.Resumed(1, "h", 11, 0, None, False), msg.Suback(1, resume.version, []), first_delivery())
    made.quiet("e1")
    # the placement of a dialogue is a step of its own
    made.placement = ["e2"]
    return made


def play_step(stage: Stage, step: dict[str, Any]) -> None:
    record = bytes.fromhex(step["hex"])
    if step["to"] == "client":
        if step["from"] == "h":
            return  # the stage has answered JOIN already
        stage.brokers[step["from"]].say_raw(record)
        stage.quiet(step["from"], seconds=0.1)
        return
    if step["to"] == "h":
        stage.until(lambda: len(stage.joins) == 2, RULE, "no JOIN has come")
        assert msgspec.msgpack.decode(wire.encode(stage.joins[-1])) == step["value"]
        return
    wanted = msg.decode(msg.from_client, record)
    if isinstance(wanted, msg.Subs) and step["to"] == "e1":
        stage.order(do="subscribe", subscriber="s", subscription=wanted.adds[0].text)
    if isinstance(wanted, msg.Go) and wanted.members[0].since is None:
        # whether it counts is up to the client; ours does where it can
        said = stage.expect(step["to"], msg.Go, RULE)
        assert [item.attachment for item in said.members] == [item.attachment for item in wanted.members]
        return
    assert stage.expect(step["to"], type(wanted), RULE) == wanted


@pytest.mark.parametrize("dialogue", DIALOGUES, ids=lambda one: one["name"])
def test_our_client_says_its_part(dialogue: dict[str, Any], client: MemoryClient, stage: Stage):
    edges = [step["value"][2] for step in dialogue["steps"] if step["from"] == "h"]
    stage.placement = edges or ["e2"]
    for step in dialogue["steps"]:
        play_step(stage, step)
        if (state := step.get("state")) is not None:
            subscriber = client.machine.subscribers["s"]
            held = {"owner_epoch": list(subscriber.epoch), "token": list(subscriber.token or ()),
                    "watermarks": [list(mark) for mark in subscriber.stream.marks()]}  # fmt: skip
            assert held == behind(state, subscriber), step["says"]


def behind(state: dict[str, Any], subscriber: Any) -> dict[str, Any]:
    """The state of the vector; n may be that of the next RESUME already, which our client sends in the same round."""
    incarnation, n = state["owner_epoch"]
    ahead = subscriber.epoch[1] - n
    return {**state, "owner_epoch": [incarnation, n + (ahead if ahead == 2 else 0)]}


def test_a_dialogue_tells_every_record_of_a_move():
    told = {step["value"][0] for dialogue in DIALOGUES for step in dialogue["steps"]}
    wanted = (
        msg.MoveTo, msg.Attach, msg.Held, msg.End, msg.Go, msg.Stay, msg.Detach, msg.AuditQuery, msg.AuditReply,
        msg.Moved, msg.Epoch, msg.AttachmentClosed, msg.Resume, msg.Subs,
    )  # fmt: skip
    assert {kind.__struct_config__.tag for kind in wanted} <= told
