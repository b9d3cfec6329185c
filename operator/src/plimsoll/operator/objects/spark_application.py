"""Keeps the live job as a SparkApplication, if the API server serves that kind.

The kinds belong to other operators, which may be installed or removed at any time, so they are polled, not watched.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiConflictError, ApiNotFoundError
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import is_ours, needs_write, ref, uid
from plimsoll.operator.objects.spark_jobs import SparkObstacle
from plimsoll.operator.reconcile.observed import label

API_VERSIONS: Final = ("sparkoperator.k8s.io/v1beta2", "spark.apache.org/v1")
DISCOVERY_SECONDS: Final = 60.0
"""Seconds between two discoveries of the kinds that the API server serves."""


class SparkApplications:
    """The SparkApplication of one fleet."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._served: dict[str, bool] = {}
        self._ask_at = 0.0
        self._clean = False

    async def reconcile(self, wanted: Object | None, name: str) -> SparkObstacle | None:
        """Create, update or delete the object of this name; why that is impossible, if it is.

        Raises what `Api` raises.
        """
        if wanted is None and self._clean:
            return None
        await self._discover()
        version = wanted["apiVersion"] if wanted is not None else ""
        for other in API_VERSIONS:
            if other != version and self._served.get(other) and not self._clean:
                await self._delete(other, name)
        self._clean = wanted is None
        if wanted is None:
            return None
        if not self._served[version]:
            return SparkObstacle(
                "NotServed", f"the API server does not serve SparkApplication of {version}: install that operator"
            )
        return await self._write(wanted)

    async def _discover(self) -> None:
        if monotonic() >= self._ask_at or not self._served:
            for version in API_VERSIONS:
                self._served[version] = await self._api.serves(version)
            self._ask_at = monotonic() + DISCOVERY_SECONDS

    async def _write(self, wanted: Object) -> SparkObstacle | None:
        try:
            live = await self._api.get(
                _versioned_kind(wanted["apiVersion"]), self._namespace, wanted["metadata"]["name"]
            )
        except ApiNotFoundError:  # it is created below
            live = None
        if live is not None and not is_ours(live, wanted):
            return SparkObstacle("NameTaken", f"{'/'.join(ref(wanted))} exists and is not managed by the operator")
        if live is None or needs_write(live, wanted):
            await self._api.apply(wanted)
        return None

    async def _delete(self, version: str, name: str) -> None:
        try:
            live = await self._api.get(_versioned_kind(version), self._namespace, name)
            if label(live, "app.kubernetes.io/managed-by") == names.MANAGER:
                await self._api.delete(_versioned_kind(version), self._namespace, name, uid=uid(live))
        except (ApiNotFoundError, ApiConflictError):
            return  # it is gone, or another object has its name


def _versioned_kind(version: str) -> str:
    return f"SparkApplication.{version.partition('/')[0]}"
