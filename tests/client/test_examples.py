"""The examples do what their first lines say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENT

from plimsoll.client import Publisher, Subscriber

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "clients"
ADAPTER = EXAMPLES / "conformance_client.py"  # not for readers of the library, but for `plimsoll conformance`


def run(name: str, *arguments: str) -> str:
    command = [*PATIENT, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def file(fleet: Any, tmp_path: Path) -> str:
    """A connection file, as `plimsoll client-config` prints it."""
    path = tmp_path / "app.json"
    path.write_text(fleet.connection_file())
    return str(path)


def test_publish(file: str):
    assert run("publish.py", file).startswith("Summary(accepted=10,")


def test_asynchronous(file: str):
    assert run("asynchronous.py", file).count("Delivery(") == 3


def test_gateway(file: str):
    assert run("gateway.py", file) == "1000 delivered\n"


def test_subscribe(file: str, tmp_path: Path, eventually: Any):
    with (tmp_path / "out").open("w+") as out:
        process = subprocess.Popen([*PATIENT, str(EXAMPLES / "subscribe.py"), file], stdout=out)
        try:

            def printed() -> bool:
                run("publish.py", file)
                return "'high': 34.0" in (tmp_path / "out").read_text()

            eventually(printed)
            assert "'high': 30.0" not in (tmp_path / "out").read_text()
        finally:
            process.kill()
            process.wait(300)


def test_resume(fleet: Any, file: str, tmp_path: Path):
    place = tmp_path / "place.json"
    with fleet.connection() as connection:
        first = Subscriber(connection, name="reporter")
        first.subscribe("[class,=,'STOCK']")
        token, marks = first.token, first.watermarks
        first.close(withdraw=False)
        with Publisher(connection) as publisher:
            for n in range(20):
                publisher.publish({"class": "STOCK", "n": n})
    assert token is not None
    place.write_text(f'[["{token[0]}", {token[1]}, {token[2]}], {[list(each) for each in marks]}]'.replace("'", '"'))
    for start in (0, 10):
        lines = run("resume.py", file, str(place)).splitlines()
        assert [f"'n': {start + i}}}" in line for i, line in enumerate(lines)] == [True] * 10


def test_the_adapter_does_the_same_in_a_fleet(file: str):
    orders = [
        {"do": "subscribe", "subscriber": "s", "subscription": "[n,=,1]"},
        {"do": "publish", "publisher": "p", "attributes": {"n": 1}},
    ]
    command = [*PATIENT, str(ADAPTER), file]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for order, event in zip(orders, ("counts", "delivery"), strict=True):
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            while json.loads(process.stdout.readline())["event"] != event:
                pass  # the answer to the publication
        process.stdin.write('{"do": "stop"}\n')
        process.stdin.close()
        assert process.wait(300) == 0


@pytest.mark.parametrize(
    "path", sorted(path for path in EXAMPLES.glob("*.py") if path != ADAPTER), ids=lambda path: path.name
)
def test_an_example_is_short(path: Path):
    code = [line for line in path.read_text().splitlines() if line and not line.startswith(("import", "from", '"""'))]
    assert len(code) <= 14
