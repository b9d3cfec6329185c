"""The survey of a local fleet's load, with the supervisor's key: it may ask, and commands nothing."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.mediator.fleet_resources import Object
from plimsoll.mediator.world import survey_run
from plimsoll.mediator.world.traffic_survey import TrafficSurvey


def survey_load(folder: FleetFolder, objects: Sequence[Object], cluster: str, over_seconds: float) -> TrafficSurvey:
    """The survey of the fleet of these objects; `SurveyError` if a broker does not answer."""
    curve = keys.control_keys(folder, keys.SUPERVISOR, plain=survey_run.is_plain(objects))
    return survey_run.run_survey(keys.SUPERVISOR, curve, objects, cluster, over_seconds)
