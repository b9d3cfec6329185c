"""Why the API server refuses to create pods of brokers: the StatefulSet controller says it in Events alone.

Events are read only while a pod is missing, seldom, and one page of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import is_leaving
from plimsoll.operator.reconcile.observed import ObservedObjects, unix_seconds

log = logging.getLogger(__name__)

MISSING_SECONDS: Final = 5.0
"""A pod may be missing for this long before Events are read."""
INTERVAL_SECONDS: Final = 15.0
SKEW_SECONDS: Final = 30.0
"""The clock of the API server may differ by this from the operator's."""
EVENTS_AT_MOST: Final = 500
SELECTOR: Final = "reason=FailedCreate,regarding.kind=StatefulSet"
MESSAGE_AT_MOST: Final = 500


class PodRefusals:
    """What is known of the pods of one namespace that cannot be created."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._missing_since: dict[str, float] | None = None
        """None before the first look: since when a pod is missing then is not known."""
        self._read_at = float("-inf")
        self.messages: Mapping[str, str] = {}
        """By broker, why its pod is refused."""

    async def look(self, observed: ObservedObjects, now: float) -> None:
        """Read why pods are missing, if one has been for a while; `now` in Unix seconds. Raises nothing."""
        missing = set(_without_pods(observed))
        before, first = self._missing_since or {}, 0.0 if self._missing_since is None else now
        self._missing_since = since = {name: before.get(name, first) for name in missing}
        self.messages = {name: text for name, text in self.messages.items() if name in missing}
        is_long = any(now - at >= MISSING_SECONDS for at in since.values())
        if not is_long or now - self._read_at < INTERVAL_SECONDS:
            return
        self._read_at = now
        try:
            events = await self._api.page("Event", self._namespace, SELECTOR, EVENTS_AT_MOST)
        except (ApiError, ApiConflictError, ApiNotFoundError) as error:
            log.info("%s: Events about pods that are missing were not read: %s", self._namespace, error)
            return
        uids = {name: observed.objects["StatefulSet", name]["metadata"].get("uid", "") for name in missing}
        self.messages = latest_messages(events, uids, since)


def latest_messages(
    events: Iterable[Mapping[str, Any]], uids: Mapping[str, str], since: Mapping[str, float]
) -> dict[str, str]:
    """The newest message about each of these StatefulSets, given with their uids, since its pod is missing."""
    found: dict[str, tuple[float, str]] = {}
    for event in events:
        about = event.get("regarding", {})
        name = about.get("name", "")
        at = _last_seen(event)
        if name in uids and about.get("uid", "") == uids[name] and at >= since[name] - SKEW_SECONDS:
            found[name] = max(found.get(name, (0.0, "")), (at, str(event.get("note", ""))))
    return {name: text[:MESSAGE_AT_MOST] for name, (_, text) in found.items() if text}


def _last_seen(event: Mapping[str, Any]) -> float:
    times = [
        (event.get("series") or {}).get("lastObservedTime"), event.get("deprecatedLastTimestamp"),
        event.get("eventTime"), event.get("metadata", {}).get("creationTimestamp"),
    ]  # fmt: skip
    return max((unix_seconds(time) for time in times if time), default=0.0)


def _without_pods(observed: ObservedObjects) -> Iterator[str]:
    """Brokers with a StatefulSet that is to have a pod, and has none."""
    for name in observed.brokers():
        stored: Object | None = observed.get("StatefulSet", name)
        if stored is not None and not is_leaving(stored) and observed.pod(name) is None:
            yield name
