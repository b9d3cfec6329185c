"""The live job as an object of an operator for Spark, where the API server knows the kind: written, mended, taken away.

These kinds belong to others and may come and go, so nobody watches them: they are asked for while they are wanted.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from plimsoll.operator import names
from plimsoll.operator.api import Api, ConflictError, MissingError
from plimsoll.operator.names import Object
from plimsoll.operator.objects import differs, is_ours, uid
from plimsoll.operator.observed import label
from plimsoll.operator.spark import Lack

VERSIONS: Final = ("sparkoperator.k8s.io/v1beta2", "spark.apache.org/v1")
ASK_SECONDS: Final = 60.0
"""So often the API server is asked which of them it knows."""


class Applications:
    """Those of one fleet."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._served: dict[str, bool] = {}
        self._ask_at = 0.0
        self._clean = False

    async def look(self, wanted: Object | None, name: str) -> Lack | None:
        """Let there be this object and no other of that name; why that cannot be.

        Raises what `Api` raises: it is looked at again.
        """
        if wanted is None and self._clean:
            return None
        await self._ask()
        version = wanted["apiVersion"] if wanted is not None else ""
        for other in VERSIONS:
            if other != version and self._served.get(other) and not self._clean:
                await self._delete(other, name)
        self._clean = wanted is None
        if wanted is None:
            return None
        if not self._served[version]:
            return Lack("NotServed", f"the cluster knows no SparkApplication of {version}: install that operator")
        return await self._write(wanted)

    async def _ask(self) -> None:
        if monotonic() >= self._ask_at or not self._served:
            for version in VERSIONS:
                self._served[version] = await self._api.serves(version)
            self._ask_at = monotonic() + ASK_SECONDS

    async def _write(self, wanted: Object) -> Lack | None:
        try:
            live = await self._api.get(_kind(wanted["apiVersion"]), self._namespace, wanted["metadata"]["name"])
        except MissingError:
            live = None
        if live is not None and not is_ours(live, wanted):
            return Lack("NameTaken", f"somebody else has made SparkApplication/{wanted['metadata']['name']}")
        if live is None or differs(live, wanted):
            await self._api.apply(wanted)
        return None

    async def _delete(self, version: str, name: str) -> None:
        try:
            live = await self._api.get(_kind(version), self._namespace, name)
            if label(live, "app.kubernetes.io/managed-by") == names.MANAGER:
                await self._api.delete(_kind(version), self._namespace, name, uid=uid(live))
        except (MissingError, ConflictError):
            return  # it has gone, or another has come


def _kind(version: str) -> str:
    return f"SparkApplication.{version.partition('/')[0]}"
