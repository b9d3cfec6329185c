"""One fleet's Spark: keeps the objects for a Spark operator, and restarts a live job that writes no snapshots."""

from __future__ import annotations

from time import time

from plimsoll.core.spec import Resources
from plimsoll.operator.api import Api
from plimsoll.operator.names import Object
from plimsoll.operator.objects import channel_launch, spark_jobs
from plimsoll.operator.objects.channel_launch import driver_name
from plimsoll.operator.objects.manifest import owner
from plimsoll.operator.objects.spark_application import SparkApplications
from plimsoll.operator.objects.spark_jobs import LiveJobMonitor, LiveJobStatus, SparkObstacle
from plimsoll.operator.reconcile.observed import ObservedObjects
from plimsoll.operator.reconcile.steps import Delete
from plimsoll.operator.settings import OperatorSettings
from plimsoll.sparkjobs.launch.spec import live_name
from plimsoll.telemetry.client.snapshot_poller import PollResult


class SparkReconciler:
    """The live job and the driver of channels of one fleet, with their state between reconciliations."""

    def __init__(self, api: Api, namespace: str, settings: OperatorSettings) -> None:
        self._namespace, self._settings = namespace, settings
        self._applications, self._channels = SparkApplications(api, namespace), SparkApplications(api, namespace)
        self._channel_obstacle: SparkObstacle | None = None
        self._monitor = LiveJobMonitor()
        self._set_aside = 0

    async def reconcile(
        self,
        resources: Resources,
        observed: ObservedObjects,
        known: PollResult | None,
        channels: Object | None = None,
    ) -> Delete | None:
        """Write objects for a Spark operator; returns the deletion of a live job that has to be restarted, if any.

        `channels`: the SparkApplication of the driver of channels; None: there is to be none. Raises what `Api` raises.
        """
        fleet = observed.get("BrokerFleet", resources.fleet.name)
        if fleet is not None and self._settings.spark:
            metadata = {"namespace": self._namespace, "ownerReferences": [owner(fleet)]}
            wanted = spark_jobs.spark_application(resources, self._settings, metadata)
            self._monitor.application_obstacle = await self._applications.reconcile(
                wanted, live_name(resources.fleet.name)
            )
            self._channel_obstacle = await self._channels.reconcile(channels, driver_name(resources.fleet.name))
        return self._monitor.restart_step(resources, observed, known, time())

    def channel_obstacle(self, resources: Resources) -> SparkObstacle | None:
        """Why the driver of channels cannot be launched; None: nothing is known to keep it from that."""
        return channel_launch.launch_obstacle(resources, self._settings) or self._channel_obstacle

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
