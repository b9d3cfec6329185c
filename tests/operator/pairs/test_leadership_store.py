"""Who leads is changed by compare-and-set in the status of the cluster, and nothing else of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plimsoll.core.head.standby.leadership import HeadLeadership, LeadershipConflictError, leadership_status
from plimsoll.operator.pairs.leadership_store import (
    LeadershipDroppedError,
    change_leadership,
)

BEFORE, AFTER = HeadLeadership(1, 0, leads=5), HeadLeadership(1, 0, standby=9, sync=1, leads=5)


class FakeApi:
    """One cluster. `keeps`: whether its definition has the field."""

    def __init__(self, status: dict[str, Any], *, keeps: bool = True) -> None:
        self.status, self.keeps = status, keeps

    async def set_status(self, kind: str, namespace: str, name: str, change: Any) -> dict[str, Any]:
        assert (kind, namespace, name) == ("BrokerCluster", "ns", "east")
        self.status = dict(change({"status": self.status}))
        if not self.keeps:
            self.status.pop("leadership")
        return {"status": self.status}


def store(api: Any) -> Any:
    return asyncio.run(change_leadership(api, "ns", "east", BEFORE, AFTER))


def test_a_change_keeps_the_rest_of_the_status():
    api = FakeApi({"leadership": leadership_status(BEFORE), "subscribers": 3})
    assert store(api)["status"] == {"leadership": leadership_status(AFTER), "subscribers": 3}


def test_a_value_that_another_operator_has_changed_is_not_overwritten():
    api = FakeApi({"leadership": leadership_status(HeadLeadership(2, 1))})
    with pytest.raises(LeadershipConflictError, match="in place of"):
        store(api)
    assert api.status["leadership"]["term"] == 2


def test_definitions_without_the_field_are_noticed():
    api = FakeApi({"leadership": leadership_status(BEFORE)}, keeps=False)
    with pytest.raises(LeadershipDroppedError, match="apply the definitions"):
        store(api)
