"""The survey in the operator's pod: which objects and which key it takes, and what it prints."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from plimsoll.mediator.control_plane import MediatorKeyPair
from plimsoll.mediator.world.traffic_survey import SurveyError, TrafficSurvey, decode_survey
from plimsoll.operator import names, survey
from plimsoll.operator.api import ApiError
from plimsoll.operator.security import keys

FLEET = {
    "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "f"},
    "spec": {},
}  # fmt: skip


class FakeApi:
    """A namespace with one fleet and one Secret."""

    def __init__(self, secret: dict[str, Any], *, plain: bool = False) -> None:
        self.secret, self.fleet = secret, {**FLEET, "spec": {"security": {"plain": plain}}}

    async def list(self, kind: str, namespace: str) -> list[dict[str, Any]]:
        assert namespace == "ships"
        return [self.fleet] if kind == "BrokerFleet" else []

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        assert (kind, namespace, name) == ("Secret", "ships", names.MEDIATOR_KEYS)
        return self.secret


def read(api: FakeApi) -> tuple[list[dict[str, Any]], MediatorKeyPair | None]:
    return asyncio.run(survey.fleet_and_key(api, "ships"))  # type: ignore[arg-type]  # a stand-in


def test_the_mediators_key_is_read():
    secret = keys.new_secret(names.MEDIATOR_KEYS, {}, {}, "ships")
    objects, curve = read(FakeApi(secret))
    held = keys.read_keys(secret)
    assert held is not None
    assert curve == MediatorKeyPair(held.public, held.secret)
    assert [each["kind"] for each in objects] == ["BrokerFleet"]


def test_a_fleet_without_keys_needs_none():
    assert read(FakeApi({}, plain=True))[1] is None


def test_a_secret_without_a_pair():
    with pytest.raises(SurveyError, match="plimsoll-mediator-keys holds no key pair"):
        read(FakeApi({"data": {}}))


def test_what_is_printed(monkeypatch, capfdbinary):
    found, asked = TrafficSurvey({}, {"e": {"s": ("[a,=,1]",)}}), []

    async def fleet(namespace: str) -> tuple[list[Any], None]:
        return [namespace], None

    def run(*arguments: Any) -> TrafficSurvey:
        asked.append(arguments)
        return found

    monkeypatch.setattr(survey, "_read", fleet)
    monkeypatch.setattr(survey, "run_survey", run)
    assert survey.main(["ships", "12.5"]) == 0
    assert survey.main(["ships", "12.5", "east"]) == 0
    assert asked == [(names.MEDIATOR, None, ["ships"], cluster, 12.5) for cluster in ("", "east")]
    out = capfdbinary.readouterr().out
    assert decode_survey(out[: len(out) // 2]) == found
    assert json.loads(out[: len(out) // 2])["subscribers"]["e"]


@pytest.mark.parametrize("fault", [SurveyError("e\x1b does not answer"), ApiError(403, "no right")])
def test_a_fault_is_one_line(monkeypatch, capsys, fault):
    async def fleet(namespace: str) -> None:
        raise fault

    monkeypatch.setattr(survey, "_read", fleet)
    assert survey.main(["ships", "12.5"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\x1b" not in err
