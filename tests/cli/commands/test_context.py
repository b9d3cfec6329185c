"""`plimsoll context`: stored and found fleets, the one in use, and commands that go there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli import asked

from plimsoll.cli.contexts.context_file import context_path


@pytest.fixture(autouse=True)
def kubeconfig(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "config"
    path.write_text("contexts: [{name: kind, context: {namespace: ships}}]")
    monkeypatch.setenv("KUBECONFIG", str(path))


@pytest.fixture
def file(home: Path) -> str:
    path = home / "app.json"
    path.write_text('{"security": "plain", "heads.json": {"east": {"endpoint": "tcp://127.0.0.1:1"}}}')
    return str(path)


def test_contexts_are_stored_listed_used_shown_and_forgotten(run, file):
    assert run("context", "add", "prod", "--key-file", file)[:2] == (
        0, "context prod added; `plimsoll context use prod` lets commands go to it\n",
    )  # fmt: skip
    assert run("context", "add", "k", "--kubernetes", "kind", "-n", "boats")[0] == 0
    assert run("context", "add", "here", "--fleet", "quotes")[0] == 0
    assert run("context", "add", "prod", "--key-file", file)[1].startswith("context prod changed")
    assert run("context", "use", "prod") == (0, "commands go to prod\n", "")
    for _ in asked.fleet():
        lines = [line.split() for line in run("context", "list")[1].splitlines()]
        listed = json.loads(run("context", "list", "-o", "json")[1])
    assert [line[:3] for line in lines[1:]] == [
        ["default", "local", lines[1][2]], ["here", "local", "fleet"], ["k", "kubernetes", "kubeconfig"],
        ["kind", "kubernetes", "kubeconfig"], ["*", "prod", "address"],
    ]  # fmt: skip
    assert [each["name"] for each in listed if each["current"]] == ["prod"]
    assert run("context", "list", "-o", "name")[1].split() == ["default", "here", "k", "kind", "prod"]
    assert f'connectionFile: "{file}"' in run("context", "show")[1]
    assert "namespace ships" in run("context", "show", "kind")[1]
    assert run("context", "delete", "prod")[0] == 0
    assert run("context", "show")[0] == 3
    assert run("context", "use", "--none") == (0, "no context is in use\n", "")


def test_an_address_with_keys_is_two_files_or_a_connection_file(run, home):
    key, server = home / "my.key", home / "head.pub"
    key.write_text("x" * 40)
    server.write_text("y" * 40)
    given = ("--address", "tcp://h:7000", "--key-file", str(key))
    assert run("context", "add", "prod", *given, "--server-key", str(server))[0] == 0
    stored = json.loads(context_path().read_text())["contexts"]["prod"]
    assert stored == {"addresses": ["tcp://h:7000"], "secretKeyFile": str(key), "serverKey": str(server)}
    code, _, err = run("context", "add", "prod", *given)
    assert (code, "give --address and --server-key, too" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["add", "a"], 2, "say where the fleet is"),
        (["add", "a", "--fleet", "q", "--kubernetes", "kind"], 2, "say where the fleet is"),
        (["add", "a b", "--fleet", "q"], 2, "is not a name"),
        (["add", "a", "--fleet", "q", "-n", "ships"], 2, "--namespace goes with --kubernetes"),
        (["add", "a", "--kubernetes", "kidn"], 3, 'Did you mean "kind"?'),
        (["add", "a", "--address", "h:7000", "--plain"], 2, "write tcp://HOST:PORT"),
        (["add", "a", "--address", "tcp://h:1"], 2, "give --key-file FILE, or --plain"),
        (
            ["add", "a", "--address", "tcp://h:1", "--plain", "--server-key", "x"],
            2,
            "--plain goes with --address alone",
        ),
        (["add", "a", "--key-file", "missing.json"], 2, "cannot read"),
        (["use", "kidn"], 3, 'Did you mean "kind"?'),
        (["use"], 2, "name a context, or write --none"),
        (["show"], 3, "no context is in use"),
        (["show", "kidn"], 3, 'Did you mean "kind"?'),
        (["delete", "kind"], 3, 'no stored context "kind"'),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_stored(run, arguments, code, said):
    found, _, err = run("context", *arguments)
    assert (found, said in err) == (code, True), err
    assert not context_path().exists()
