import pytest

from plimsoll.cli import selectors
from plimsoll.cli.exit_codes import CommandError
from plimsoll.local.storage.fleet_folder import FleetFolder, FleetLock


def made(name):
    folder = FleetFolder.of(name)
    folder.make()
    folder.store.touch()
    return folder


def code_of(name):
    with pytest.raises(CommandError) as caught:
        selectors.select_fleet(name)
    return caught.value.code, str(caught.value)


def test_the_only_fleet_or_the_only_one_that_runs_needs_no_name(monkeypatch):
    assert code_of(None) == (3, code_of(None)[1])
    assert "plimsoll up -f FILE" in code_of(None)[1]
    first = made("a")
    assert selectors.select_fleet(None) == first
    second = made("b")
    assert code_of(None)[0] == 2
    with FleetLock(second):
        assert selectors.select_fleet(None) == second
    monkeypatch.setenv("PLIMSOLL_FLEET", "a")
    assert selectors.select_fleet(None) == first
    assert selectors.select_fleet("b") == second
    assert code_of("c") == (3, code_of("c")[1])
    assert "Fleets: a, b." in code_of("c")[1]


def test_kinds():
    assert selectors.resolve_kind("bf").name == "BrokerFleet"
    assert selectors.resolve_kind("sessions").name == selectors.resolve_kind("Session").name == "LoadBalancingSession"
    with pytest.raises(CommandError, match='Did you mean "EdgeBroker"'):
        selectors.resolve_kind("EdgeBrokr")
    with pytest.raises(CommandError, match=r"Kinds: BrokerFleet \(bf\).*bundles, consumers and topics"):
        selectors.resolve_kind("zzz")
