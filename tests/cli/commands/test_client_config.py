"""`plimsoll client-config`: a file with which the library, the tool and the examples connect."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.cli.conftest import QUICKSTART

from plimsoll.client import Connection, Subscriber, errors


def test_an_application_connects_by_it(run, shared_fleet, home):
    code, out, err = run("client-config", "app")
    assert (code, err) == (0, "")
    path = home / "app.json"
    path.write_text(out)
    with Connection.from_file(path, cluster="east") as connection:
        connection.wait_open()
        assert connection.status()["plain"] is False
    assert run("client-config", "app", "--cluster", "esat")[0] == 3


def test_a_file_is_for_its_owner_alone(run, shared_fleet, home):
    path = home / "app.json"
    path.write_text("before")
    path.chmod(0o644)
    assert run("client-config", "app", "--write", str(path)) == (0, "", "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text()) == json.loads(run("client-config", "app")[1])
    code, _, err = run("client-config", "app", "--write", str(home / "missing" / "app.json"))
    assert (code, "cannot be written" in err) == (1, True)


def test_the_tool_goes_there_by_a_context(run, shared_fleet, home, monkeypatch):
    path = home / "app.json"
    path.write_text(run("client-config", "app")[1])
    monkeypatch.setenv("PLIMSOLL_HOME", str(home / "another"))  # a machine without the fleet's folder
    assert run("context", "add", "prod", "--key-file", str(path))[0] == 0
    assert run("pub", "a=1", "--context", "prod")[:2] == (0, "1 accepted\n")
    assert run("bench", "--context", "prod", "--seconds", "0.2", "--rate", "10")[0] == 0
    lines = run("get", "bc", "--context", "prod", "-o", "wide")[1].splitlines()
    assert lines[1].split()[:3] == ["east", "True", "Connected"]
    code, _, err = run("client-config", "app", "--context", "prod")
    assert (code, "context prod is an address" in err) == (2, True)


def test_a_fleet_without_keys_says_so_in_its_file(run, home: Path):
    path = home / "plain.yaml"
    path.write_text(
        QUICKSTART.read_text().replace("  name: quickstart", "  name: quickstart\nspec: {security: {plain: true}}")
    )
    assert run("up", "-d", "-f", str(path))[0] == 0
    made = json.loads(run("client-config", "app")[1])
    assert (made["security"], "secret.key" in made) == ("plain", False)
    file = home / "app.json"
    file.write_text(json.dumps(made))
    with Connection.from_file(file) as connection:
        connection.wait_open()


def test_each_client_that_the_fleet_names_has_its_own_key_and_rights(run, home: Path):
    path = home / "named.yaml"

    def named(channels: str) -> str:
        clients = f"[{{name: shelters, roles: [Subscribe], channels: {channels}}}]"
        fleet = f"  name: quickstart\nspec: {{security: {{clients: {clients}}}}}"
        path.write_text(QUICKSTART.read_text().replace("  name: quickstart", fleet))
        return str(path)

    assert run("up", "-d", "-f", named("[fires]"))[0] == 0
    code, _, err = run("client-config", "shelter")
    assert (code, 'Did you mean "shelters"?' in err) == (3, True)
    file = home / "shelters.json"
    file.write_text(run("client-config", "shelters")[1])
    code, _, err = run("pub", "a=1", "--client", "shelters")
    assert (code, "shelters may not publish" in err) == (1, True)
    assert run("pub", "a=1")[:2] == (0, "1 accepted\n")
    with Connection.from_file(file) as connection, Subscriber(connection) as subscriber:
        subscriber.subscribe("[channel,=,'fires']")
        with pytest.raises(errors.SubscriptionRefusedError, match="shelters"):
            subscriber.subscribe("[channel,=,'floods']")
    assert run("apply", "-f", named("[fires, floods]"))[0] == 0
    with Connection.from_file(file) as connection, Subscriber(connection) as subscriber:
        until = time.monotonic() + 300
        while True:
            try:
                subscriber.subscribe("[channel,=,'floods']")
            except errors.SubscriptionRefusedError:
                assert time.monotonic() < until, "brokers have not read the new grant"
            else:
                break


def test_a_fleet_that_does_not_run(run, home):
    assert run("client-config", "app")[0] == 3


@pytest.mark.parametrize("name", ["quickstart", "three-clusters", "kubernetes/quickstart"])
def test_examples_are_printed_and_valid(run, home, name):
    assert name in run("example")[1].split()
    (home / "fleet.yaml").write_text(run("example", name)[1])
    assert run("validate", "-f", str(home / "fleet.yaml"))[0] == 0
    code, _, err = run("example", name[:-1])
    assert (code, f'Did you mean "{name}"?' in err) == (3, True)


def test_programs_and_applications_are_examples_too(run):
    names = run("example")[1].split()
    assert run("example", "clients/publish.py")[1] == (QUICKSTART.parent / "clients" / "publish.py").read_text()
    assert "plimsoll/broker:dev" in run("example", "kubernetes/applications/quotes")[1], "the image of a checkout"
    assert not [name for name in names if name.startswith(("demo", "global", "go-client"))]
