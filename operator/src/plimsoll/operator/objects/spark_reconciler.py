"""One fleet's Spark job: keeps the object for a Spark operator, and restarts a driver that writes no snapshots."""

from __future__ import annotations

from time import time

from plimsoll.core.spec import Resources
from plimsoll.operator.api import Api
from plimsoll.operator.objects import spark_jobs
from plimsoll.operator.objects.manifest import owner
from plimsoll.operator.objects.spark_application import SparkApplications
from plimsoll.operator.objects.spark_jobs import LiveJobMonitor, LiveJobStatus
from plimsoll.operator.reconcile.observed import ObservedObjects
from plimsoll.operator.reconcile.steps import Delete
from plimsoll.operator.settings import OperatorSettings
from plimsoll.sparkjobs.launch.spec import live_name
from plimsoll.telemetry.client.snapshot_poller import PollResult


class SparkReconciler:
    """The Spark job of one fleet, with its state between reconciliations."""

    def __init__(self, api: Api, namespace: str, settings: OperatorSettings) -> None:
        self._namespace, self._settings = namespace, settings
        self._applications = SparkApplications(api, namespace)
        self._monitor = LiveJobMonitor()
        self._set_aside = 0

    async def reconcile(
        self, resources: Resources, observed: ObservedObjects, known: PollResult | None
    ) -> Delete | None:
        """Write the object for the Spark operator; returns the deletion of a driver that has to be restarted, if any.

        Raises what `Api` raises.
        """
        fleet = observed.get("BrokerFleet", resources.fleet.name)
        if fleet is not None and self._settings.spark:
            metadata = {"namespace": self._namespace, "ownerReferences": [owner(fleet)]}
            wanted = spark_jobs.spark_application(resources, self._settings, metadata)
            self._monitor.application_obstacle = await self._applications.reconcile(
                wanted, live_name(resources.fleet.name)
            )
        return self._monitor.restart_step(resources, observed, known, time())

    def files_set_aside(self, known: PollResult | None) -> str:
        """What an event has to say of files that were set aside since the last call; empty if there are none."""
        if known is None or known.chosen is None:
            return ""
        before, self._set_aside = self._set_aside, known.set_aside.count
        if known.set_aside.count <= before:
            return ""
        return f"files set aside: {known.set_aside.count}; the newest is {known.set_aside.describe()}"

    def status(self, resources: Resources, observed: ObservedObjects, known: PollResult | None) -> LiveJobStatus | None:
        """Status and condition of the live job; None if the fleet has none."""
        return self._monitor.status(resources, self._settings, observed, known, time())
