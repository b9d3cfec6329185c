"""A local fleet is surveyed with the supervisor's key; without keys in a plain fleet."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local import keys, load_survey
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.mediator.world import survey_run
from plimsoll.mediator.world.traffic_survey import TrafficSurvey

FOUND = TrafficSurvey({}, {})


@pytest.fixture
def asked(monkeypatch) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []

    def run(*arguments: Any) -> TrafficSurvey:
        found.append(arguments)
        return FOUND

    monkeypatch.setattr(survey_run, "run_survey", run)
    return found


@pytest.mark.parametrize("plain", [False, True])
def test_whose_key_asks(asked, tmp_path, plain):
    folder = FleetFolder(tmp_path / "fleet")
    folder.make()
    objects = [
        {
            "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "f"},
            "spec": {"security": {"plain": plain}},
        },
    ]  # fmt: skip
    assert load_survey.survey_load(folder, objects, "east", 30.0) is FOUND
    [(name, curve, given, cluster, seconds)] = asked
    assert (name, given, cluster, seconds) == (keys.SUPERVISOR, objects, "east", 30.0)
    assert curve == keys.control_keys(folder, keys.SUPERVISOR, plain=plain)
    assert (curve is None) == plain
