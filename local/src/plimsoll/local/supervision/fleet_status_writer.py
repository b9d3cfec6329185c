"""The statuses of a fleet's objects, as its supervisor sees them: brokers, clusters, hardware profiles, the fleet."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from plimsoll.core.spec import Resources
from plimsoll.core.spec.brokers import head_name
from plimsoll.core.spec.status.conditions import Condition
from plimsoll.local.storage.object_store import ObjectMissingError, ObjectStore, check_writable
from plimsoll.local.storage.session_cache import SessionBriefCache
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.local.supervision.channel_process import ChannelProcess
from plimsoll.local.supervision.collector_processes import CollectorProcesses
from plimsoll.local.supervision.feed_processes import FeedProcesses
from plimsoll.local.supervision.sidecar import Sidecar
from plimsoll.local.supervision.spark_process import SparkProcess
from plimsoll.local.supervision.supervised_broker import SupervisedBroker
from plimsoll.local.supervision.write_faults import TEXT_AT_MOST
from plimsoll.local.timestamps import rfc3339_now
from plimsoll.mediator import balance, resource_status
from plimsoll.mediator.away_status import away_status
from plimsoll.mediator.bundle_status import bundle_status
from plimsoll.mediator.calibration import profile_status
from plimsoll.mediator.evacuation import cordoned_edges
from plimsoll.mediator.group_status import group_status
from plimsoll.mediator.limit_condition import limit_conditions
from plimsoll.mediator.log_condition import log_conditions
from plimsoll.mediator.resource_status import ObservedBroker, merged_conditions, without_condition
from plimsoll.mediator.standby_condition import standby_conditions, standby_summary
from plimsoll.mediator.topic_status import topic_status


class FleetStatusWriter:
    """`pid` and `plain` are facts of the running fleet; the other processes are asked when a status is written.

    A status that cannot be computed keeps what it said, with a condition that tells so, and hinders no other one.
    `on_fault` is told.
    """

    def __init__(
        self,
        store: ObjectStore,
        brokers: Mapping[str, SupervisedBroker],
        mediator: Sidecar,
        collectors: CollectorProcesses,
        spark: SparkProcess,
        feeds: FeedProcesses,
        channels: ChannelProcess,
        *,
        pid: int,
        plain: bool,
        on_fault: Callable[[str, Exception], None] = lambda what, error: None,
    ) -> None:
        self._on_fault = on_fault
        self._store, self._brokers, self._pid, self._plain = store, brokers, pid, plain
        self._mediator, self._collectors, self._spark = mediator, collectors, spark
        self._feeds, self._channels = feeds, channels
        self._session_cache = SessionBriefCache(store)

    def write(self, resources: Resources, now: float) -> None:
        fleet = resources.fleet.spec
        interval = fleet.telemetry.report_interval.seconds * fleet.time_scale_percent / 100
        cordoned = cordoned_edges(self._store.objects("EdgeBroker")[1])
        seen = {
            name: replace(broker.observed(now), cordoned=name in cordoned)
            for name, broker in sorted(self._brokers.items())
        }
        text = rfc3339_now()
        with self._store.transaction():
            for name, edge in seen.items():
                if edge.role == "edge":
                    change = partial(resource_status.edge_status, seen=edge, interval_seconds=interval, time=text)
                    self._set("EdgeBroker", name, change)
            for name in resources.clusters:
                head = seen.get(head_name(name))
                edges = [broker for broker in seen.values() if (broker.cluster, broker.role) == (name, "edge")]
                if head is not None:
                    told = partial(self._cluster_status, resources, name, head, edges, interval, text)
                    self._set("BrokerCluster", name, told)
            for name in resources.profiles:
                calibrated = partial(profile_status, brokers=list(seen.values()), interval_seconds=interval, time=text)
                self._set("HardwareProfile", name, calibrated)
            now_us = time.time_ns() // 1000
            for name in resources.feeds:
                self._set("Feed", name, partial(self._feeds.status, name, now_us=now_us, text=text))
            for name in resources.channels:
                self._set("Channel", name, partial(self._channels.status, name, now_us=now_us, text=text))
            change = partial(
                resource_status.fleet_status,
                brokers=list(seen.values()),
                plain=self._plain,
                pid=self._pid,
                mediator=self._mediator.status(),
                interval_seconds=interval,
                time=text,
                telemetry=self._telemetry(),
                others=self._spark.conditions(),
            )
            self._set("BrokerFleet", resources.fleet.name, change)

    def _cluster_status(
        self,
        resources: Resources,
        name: str,
        head: ObservedBroker,
        edges: Sequence[ObservedBroker],
        interval: float,
        text: str,
        old: dict[str, Any],
    ) -> Mapping[str, Any]:
        known = (resources, name, edges, self._session_cache.refresh(), time.time())
        has_standby = bool(resources.clusters[name].spec.head.standby) if name in resources.clusters else False
        others = [balance.balanced_condition(*known), *log_conditions(head, has_standby=has_standby)]
        others += limit_conditions(old.get("status", {}), [head, *edges])
        summary = {**balance.cluster_summary(*known), **group_status(head), **away_status(head)}
        standby = standby_conditions(old.get("status", {}), wants=has_standby)
        told = resource_status.cluster_status(old, head, edges, interval, text, [*others, *standby])
        memory = told.get("policyMemory")
        units = {**bundle_status(head, edges, memory), **topic_status(resources, name, head, edges, memory)}
        pair = standby_summary(old.get("status", {})) if has_standby else {}
        return {**told, **summary, **units, **pair}

    def _telemetry(self) -> dict[str, Any]:
        live = self._spark.status()
        found = self._collectors.status() if self._collectors.names else {}
        return {**found, **({"spark": live} if live else {})}

    def _set(self, kind: str, name: str, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
        def guarded(old: dict[str, Any]) -> Mapping[str, Any]:
            try:
                told = change(without_condition(old, "StatusUncomputed") if _is_uncomputed(old) else old)
                check_writable(told)
            except StateWriteError:
                raise
            except Exception as error:  # noqa: BLE001  # one object's status must not end the fleet, nor hinder the others
                self._on_fault(f"the status of {kind}/{name}", error)
                why = f"it is as of before: {type(error).__name__}: {error}"[:TEXT_AT_MOST]
                found = Condition("StatusUncomputed", "True", "PartFailed", why)
                return {**old.get("status", {}), **merged_conditions(old, [found], rfc3339_now())}
            return told

        try:
            self._store.set_status(kind, name, guarded)
        except ObjectMissingError:  # deleted by a user meanwhile; the next round notices
            return


def _is_uncomputed(item: Mapping[str, Any]) -> bool:
    return any(each["type"] == "StatusUncomputed" for each in item.get("status", {}).get("conditions", ()))
