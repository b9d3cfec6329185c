"""A Lease, by which one of several operators mediates in a fleet while the others wait.

It only avoids useless work: clocks differ and a process may be suspended, so a lease cannot fence off a mediator;
epochs do. The holder therefore goes on while the API server does not answer, and stops when it reads that another
operator holds the lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError, Object
from plimsoll.operator.names import RELEASE
from plimsoll.operator.objects.manifest import annotation
from plimsoll.operator.tasks import cancel_tasks

log = logging.getLogger(__name__)

LEASE_KIND = "Lease"
ABANDONED_SECONDS = 60.0
"""Another release may serve a fleet whose Lease was not renewed for this long; a new pod of its own comes sooner."""
MOST_LEASE_SECONDS = 60.0
"""No holder is waited for longer, whatever its Lease says: anyone with rights may have written it."""
MOST_TRANSITIONS = 2**31 - 1
"""What a Lease can count to."""
T = TypeVar("T")


class LeaseLostError(RuntimeError):
    """Another operator holds the lease now."""


class Lease:
    """A Lease as one operator sees it; `seconds` after its last renewal another operator may take it.

    `owner` is the owner reference: the Lease is garbage-collected with its fleet. `release`: whose operators serve it.
    """

    def __init__(
        self, api: Api, namespace: str, name: str, holder: str, seconds: float = 15.0, *, owner: Object | None = None,
        release: str = "",
    ) -> None:  # fmt: skip
        self._api, self._namespace, self._name = api, namespace, name
        self._annotations = {RELEASE: release} if release else {}
        self._holder, self._seconds, self._owners = holder, seconds, [owner] if owner is not None else []
        self._seen: tuple[Any, ...] = ()
        self._seen_at = self._renewed_at = float("-inf")

    @property
    def is_fresh(self) -> bool:
        """Whether it was renewed so recently that no other operator can have taken it, by the local clock."""
        return asyncio.get_running_loop().time() - self._renewed_at < self._seconds

    async def run_while_held(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the lease, then do the work while holding it; release it at the end.

        Raises:
            LeaseLostError: another operator has taken it; the work is cancelled.

        """
        try:
            await self.acquire()
        except BaseException:
            work.close()
            raise
        working = asyncio.create_task(work)
        keeping = asyncio.create_task(self._renew())
        try:
            await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await keeping  # it only ends by raising
            return await working
        finally:
            await cancel_tasks(working, keeping)
            await self._release()

    async def _release(self) -> None:
        """Give the lease back, unless another operator has it; one that stays here ends by its time."""
        try:
            async with asyncio.timeout(self._seconds / 3):
                await self._write(release=True)
        except (ApiNotFoundError, LeaseLostError):
            return  # nothing is held any more
        except (ApiError, ApiConflictError, TimeoutError) as error:
            log.warning(
                "lease %s/%s was not released, another operator waits up to %g s for it: %s",
                self._namespace, self._name, self._seconds, str(error) or "no answer in time",
            )  # fmt: skip

    async def acquire(self) -> None:
        """Wait until this operator holds the lease."""
        while True:
            # another operator holds it, or has just written it
            with contextlib.suppress(LeaseLostError, ApiConflictError, ApiNotFoundError):
                await self._write(release=False)
                return
            await asyncio.sleep(self._seconds / 5)

    async def _renew(self) -> None:
        """Renew it until cancelled. After a conflict it is read again, and its stored holder decides."""
        while True:
            await asyncio.sleep(self._seconds / 3)
            for pause in self._api.pauses():
                with contextlib.suppress(ApiConflictError, ApiNotFoundError):  # the next try reads it again
                    await self._write(release=False)
                    break
                await asyncio.sleep(pause)

    async def _write(self, *, release: bool) -> None:
        """Renew it, take it if it is free, or release it; raises LeaseLostError while another operator holds it."""
        asked_at = asyncio.get_running_loop().time()
        try:
            item = await self._api.get(LEASE_KIND, self._namespace, self._name, retry=not release)
        except ApiNotFoundError:
            if not release:
                await self._api.create(self._made(), retry=True)
                self._renewed_at = asked_at
            return
        spec = item.get("spec", {})
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self._holder) and not self._is_over(spec):
            raise LeaseLostError(
                f"{holder} holds the lease {self._namespace}/{self._name}; delete it if there is no such operator"
            )
        if release and holder != self._holder:
            return
        changes = min(int(spec.get("leaseTransitions") or 0) + (holder not in ("", self._holder)), MOST_TRANSITIONS)
        acquired = spec.get("acquireTime") if holder == self._holder else _now()
        wanted = self._spec("" if release else self._holder, acquired or _now(), changes)
        metadata: Object = {"resourceVersion": item["metadata"]["resourceVersion"]}
        if self._owners and item["metadata"].get("ownerReferences") != self._owners:
            metadata["ownerReferences"] = self._owners
        if not self._annotations.items() <= (item["metadata"].get("annotations") or {}).items():
            metadata["annotations"] = self._annotations
        patch = {"metadata": metadata, "spec": wanted}
        await self._api.patch(LEASE_KIND, self._namespace, self._name, patch, retry=not release)
        self._renewed_at = asked_at if not release else float("-inf")

    def _is_over(self, spec: Object) -> bool:
        """Whether its holder has not renewed it in time, by the local clock alone: clocks of nodes may differ."""
        seen = (spec.get("holderIdentity"), spec.get("renewTime"))
        now = asyncio.get_running_loop().time()
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        asked = float(spec.get("leaseDurationSeconds") or self._seconds)
        return now - self._seen_at > min(asked, max(MOST_LEASE_SECONDS, self._seconds))

    def _made(self) -> Object:
        metadata: Object = {"name": self._name, "namespace": self._namespace}
        if self._owners:
            metadata["ownerReferences"] = self._owners
        if self._annotations:
            metadata["annotations"] = self._annotations
        spec = self._spec(self._holder, _now(), 0)
        return {"apiVersion": "coordination.k8s.io/v1", "kind": LEASE_KIND, "metadata": metadata, "spec": spec}

    def _spec(self, holder: str, acquired: str, changes: int) -> Object:
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._seconds)),
            "acquireTime": acquired,
            "renewTime": _now(),
            "leaseTransitions": changes,
        }


class ServingRelease:
    """Which release of the operator serves a fleet. `release`: this one's; empty: none is asked for.

    The one that holds the fleet's Lease does, also while its operators are replaced: two that served one fleet would
    give its brokers their own images in turn.
    """

    def __init__(self, api: Api, namespace: str, release: str) -> None:
        self._api, self._namespace, self._release = api, namespace, release
        self._seen: tuple[str, ...] = ()
        self._seen_at = 0.0

    async def other(self, fleet: str) -> str:
        """The other release that serves a fleet; empty if none does, or it has long not renewed the Lease."""
        if not self._release:
            return ""
        try:
            item = await self._api.get(LEASE_KIND, self._namespace, lease_name(fleet))
        except ApiNotFoundError:
            return ""
        now, serving = asyncio.get_running_loop().time(), annotation(item, RELEASE)
        seen = (serving, str(item.get("spec", {}).get("renewTime")))
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        if serving in ("", self._release) or now - self._seen_at > ABANDONED_SECONDS:
            return ""
        return serving


def lease_name(fleet: str) -> str:
    """The Lease of a fleet."""
    return f"plimsoll-mediator-{fleet}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
