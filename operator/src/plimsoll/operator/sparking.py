"""One fleet's Spark beside its mediator: what is asked of another operator, and which driver is to be started anew."""

from __future__ import annotations

from time import time

from plimsoll.core.spec import Resources
from plimsoll.operator import spark
from plimsoll.operator.api import Api
from plimsoll.operator.applications import Applications
from plimsoll.operator.change import Delete
from plimsoll.operator.objects import owner
from plimsoll.operator.observed import Observed
from plimsoll.operator.settings import Settings
from plimsoll.operator.spark import Judge, Judged
from plimsoll.sparkjobs.launching.values import live_name
from plimsoll.telemetry.asking import Known


class Sparking:
    """Holds what is remembered between looks."""

    def __init__(self, api: Api, namespace: str, settings: Settings) -> None:
        self._namespace, self._settings = namespace, settings
        self._applications = Applications(api, namespace)
        self._judge = Judge()

    async def look(self, resources: Resources, observed: Observed, known: Known | None) -> Delete | None:
        """Ask the operator for Spark that the fleet names; the driver that is to be started anew now, if one is.

        Raises what `Api` raises: it is looked at again.
        """
        fleet = observed.get("BrokerFleet", resources.fleet.name)
        if fleet is not None and self._settings.spark:
            metadata = {"namespace": self._namespace, "ownerReferences": [owner(fleet)]}
            wanted = spark.application(resources, self._settings, metadata)
            self._judge.elsewhere = await self._applications.look(wanted, live_name(resources.fleet.name))
        return self._judge.due(resources, observed, known, time())

    def judged(self, resources: Resources, observed: Observed, known: Known | None) -> Judged | None:
        """What is to be said of the live job; None where none is asked for."""
        return self._judge.judged(resources, self._settings, observed, known, time())
