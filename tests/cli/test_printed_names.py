"""Names and reasons from outside reach a terminal as escapes, in every command and every format."""

from __future__ import annotations

import argparse
import copy
import io
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli import asked
from tests.cli.conftest import Run
from tests.core.session.model import World

from plimsoll.cli import session_wait
from plimsoll.cli.parser import parser
from plimsoll.core.spec import KINDS
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.mediator.session_objects import stored_status

HOSTILE = "x\x1b[2J\x9b31m\x07\r\n  forged  e-9  moved\u202e\u2028"
NAMED, AT = "one", "2026-01-01T00:00:00Z"

COMMANDS = [
    *(("get", kind.short, "-o", form) for kind in KINDS.values() for form in ("table", "wide", "json", "yaml", "name")),
    *(("get", "all", "-o", form) for form in ("table", "wide", "json", "yaml", "name")),
    *(("describe", kind, name) for kind, name in (("bf", "default"), ("bc", "east"), ("eb", "e-0"), ("lbs", NAMED))),
    ("explain", f"lbs/{NAMED}"),
    ("explain", "lbs"),
    ("events",),
    ("watch",),
    ("get", "lbs", "-w"),
    ("get", "lbs", "-w", "-o", "yaml"),
    ("approve", NAMED),
    ("stop", NAMED),
    *((command, HOSTILE) for command in ("drain", "cordon", "uncordon", "shuffle", "approve", "stop", "down")),
    *(("rebalance", "--from", "e-0", "--to", name, "--subscribers", "1") for name in ("e-1", HOSTILE)),
    *((command, name, HOSTILE) for command in ("split", "unload") for name in ("east", HOSTILE)),
    ("get", "bundles", HOSTILE),
    ("drain", "e-0", "--exclude", HOSTILE, "--name", "two"),
    ("get", HOSTILE),
    ("get", "lbs", HOSTILE),
    ("describe", "lbs", HOSTILE),
    ("explain", HOSTILE),
    ("explain", f"lbs/{HOSTILE}"),
    ("get", "lbs", "--fleet", HOSTILE),
    ("delete", "eb", HOSTILE),
    ("apply", "-f", "hostile.yaml"),
    ("validate", "-f", "hostile.yaml"),
    ("up", "-f", "hostile.yaml"),
    ("validate", "-f", HOSTILE),
    ("pub", f"{HOSTILE}=1", HOSTILE),
    ("pub", "x=1", "--cluster", HOSTILE),
    ("sub", HOSTILE, "--cluster", HOSTILE),
    ("version",),
    ("simulate", "-f", HOSTILE),
    ("world", "--cluster", HOSTILE, "--from-status"),
    ("simulate", "-f", "hostile.yaml"),
    ("logs", "e-0"),
    ("logs", HOSTILE),
    ("context", "list"),
    ("context", "add", HOSTILE, "--fleet", HOSTILE),
    ("context", "add", "x", "--kubernetes", HOSTILE),
    ("context", "add", "x", "--plain", "--address", HOSTILE),
    ("context", "add", "x", "--key-file", HOSTILE),
    *(("context", action, HOSTILE) for action in ("use", "show", "delete")),
    ("get", "lbs", "--context", HOSTILE),
    ("client-config", HOSTILE),
    ("client-config", "app", "--cluster", HOSTILE),
    ("bench", "--cluster", HOSTILE),
    ("completion", HOSTILE),
    ("example", HOSTILE),
    ("get", "bc", "east", HOSTILE),
    (HOSTILE,),
]
OF_OTHER_PROGRAMS = {
    "record": "writes the folder of its dataset and counts",
    "replay": "writes the folder of a dataset and counts",
    "fetch": "writes the folder of its copy and counts",
    "demo": "writes what its own fleet is called",
    "experiment": "writes names of its own",
    "conformance": "writes what its own script and the client under test are called",
}


def hostile(value: Any) -> Any:
    """The same value with all of its texts hostile."""
    if isinstance(value, dict):
        return {key: hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return HOSTILE if isinstance(value, str) else value


def hostile_session() -> dict[str, Any]:
    """The status of a session that has moved subscribers with such names, whose reasons are such, too."""
    world = World(seed=1)
    world.fill("a", 8, HOSTILE)
    uid = world.ask(NAMED, source="a", target="b", select={"count": 5})
    world.until_over(uid)
    session = copy.copy(world.session(uid))
    status = stored_status(session, world.now)
    record = status.pop("record")
    times = {"startedAt", "endedAt", "lastTransitionTime", "type", "phase"}
    told = {key: value if key in times else hostile(value) for key, value in status.items()}
    for condition in told["conditions"]:
        condition.update(type="Succeeded", status="True", lastTransitionTime="2026-01-01T00:00:00Z")
    told["timeInPhases"], told["observedGeneration"] = status["timeInPhases"], 1
    return {**told, "record": {**record, "message": HOSTILE, "reason": HOSTILE}}


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetFolder]:
    monkeypatch.chdir(home)
    spec = {"scope": "Local", HOSTILE: HOSTILE, "source": {"name": HOSTILE}}
    document = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "LoadBalancingSession", "spec": spec}
    Path("hostile.yaml").write_text(yaml.safe_dump({**document, "metadata": {"name": HOSTILE}}))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    for found in asked.fleet():
        with ObjectStore(found.store) as store:
            session = {**document, "metadata": {"name": NAMED}, "spec": {"scope": "Local", "source": {"name": "e-0"}}}
            store.create(session, "2026-01-01T00:00:00Z")
            store.set_status("LoadBalancingSession", NAMED, lambda old: hostile_session())
            condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            said = {
                "conditions": [{**condition, "reason": HOSTILE, "message": HOSTILE}],
                **dict.fromkeys(("state", "endpoint"), HOSTILE),
                "head": {"name": HOSTILE},
                "endpoints": {"data": HOSTILE},
            }
            for item in store.objects("BrokerFleet", "BrokerCluster", "EdgeBroker")[1]:
                store.set_status(item["kind"], item["metadata"]["name"], lambda old, said=said: said)
                store._db.execute(  # as an earlier release would have stored it
                    "INSERT INTO events (type, reason, kind, name, message, first, last, count)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
                    (HOSTILE, HOSTILE, item["kind"], HOSTILE, HOSTILE, AT, AT),
                )
        in_one_line = HOSTILE.replace("\n", "")  # as every program of the project logs
        found.log("e-0").write_text(f"2026-01-01 00:00:00,000 INFO {in_one_line}\n")
        yield found


_sleep = time.sleep


def ends(*arguments: float) -> None:
    """A command that waits is ended; threads of libraries that other tests have left go on."""
    if threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
    _sleep(*arguments)


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: " ".join(arguments).split("\x1b")[0])
def test_no_command_prints_what_is_not_printable(
    run: Run, folder: FleetFolder, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
):
    monkeypatch.setattr(time, "sleep", ends)
    monkeypatch.setattr(session_wait, "wait_for_session", lambda *given, **more: 0)
    _, out, err = run(*arguments)
    for text in (out, err):
        assert all(line.isprintable() for line in text.split("\n")), repr(text)
        assert not any(line.startswith("  forged") for line in text.split("\n")), repr(text)
    assert out or err


def test_a_name_makes_no_cells_of_its_own(run: Run, folder: FleetFolder):
    _, out, _ = run("explain", f"lbs/{NAMED}")
    rows = [line for line in out.splitlines() if "is served by the target" in line]
    assert len(rows) == 5
    name = "x\\x1b[2J\\x9b31m\\x07\\r\\n \\x20forged \\x20e-9 \\x20moved"
    assert all(row.split("  ")[0].startswith(name) for row in rows)


def test_yaml_and_json_keep_their_values(run: Run, folder: FleetFolder):
    out = run("get", "lbs", NAMED, "-o", "yaml")[1]
    assert yaml.safe_load(out)["status"]["message"] == HOSTILE
    assert yaml.safe_load(run("get", "lbs", NAMED, "-o", "json")[1])["status"]["message"] == HOSTILE


def test_every_command_is_tried():
    (made,) = [each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)]
    tried = {command for command, *_ in COMMANDS} - {HOSTILE}
    assert set(made.choices) == tried | set(OF_OTHER_PROGRAMS)
