"""Which process of a head leads, in the status of its BrokerCluster: changed by compare-and-set."""

from __future__ import annotations

from plimsoll.core.head.standby.leadership import (
    HeadLeadership,
    LeadershipConflictError,
    leadership_status,
    stored_leadership,
)
from plimsoll.operator.api import Api, Object

CLUSTER_KIND = "BrokerCluster"


class LeadershipDroppedError(RuntimeError):
    """The definition of clusters in the API server is of an earlier version, without the field."""


async def change_leadership(
    api: Api, namespace: str, cluster: str, before: HeadLeadership, after: HeadLeadership
) -> Object:
    """Store `after` in place of `before`; returns the cluster as stored.

    The API server takes a status only for the version of the object that was read, so no other change is overwritten.

    Raises:
        LeadershipConflictError: it is not `before` any more.
        LeadershipDroppedError: the API server does not keep it.
        ApiNotFoundError: the cluster has been deleted.
        ApiError: it cannot be written now.

    """

    def change(item: Object) -> Object:
        present = stored_leadership(item.get("status", {}))
        if present != before:
            raise LeadershipConflictError(f"{cluster}: {present} has been stored in place of {before}")
        return {**item.get("status", {}), "leadership": leadership_status(after)}

    written = await api.set_status(CLUSTER_KIND, namespace, cluster, change)
    if stored_leadership(written.get("status", {})) != after:
        raise LeadershipDroppedError(
            f"the API server drops `status.leadership` of BrokerCluster/{cluster}: apply the definitions (CRDs) of this"
            " version of the chart"
        )
    return written
