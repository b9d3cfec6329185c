"""The kill matrix in pods: operator, source and target are deleted without notice, in every state of a session.

A sample of three cells, drawn by a seed, is part of `make e2e`; all of them are `make e2e-full`. After every death
nothing is lost, repeated, reordered or reported as a gap, the session ends by its deadline, and the next one works.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.cluster import Cluster, Crowd, manifest, profile
from tests.e2e.kills import HELD, Cell, Matrix, cells

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

SUBSCRIBERS = 60
PER_SECOND = 10.0


@pytest.fixture(scope="module")
def matrix(installed: Cluster) -> Iterator[Matrix]:
    """A head and three edges, which balance nothing by themselves, and applications whose every delivery is judged."""
    installed.apply(
        manifest("BrokerFleet", "fleet", security={"clients": [{"name": "crowd"}]},
                 defaults={"timing": {"reattachWithin": "2m"}}),  # the applications themselves may stall
        profile("small", 0),
        manifest("BrokerCluster", "east", head={"profile": "small"},
                 edges=[{"name": "edge", "profile": "small", "replicas": 3}]),
    )  # fmt: skip
    installed.wait(lambda: installed.is_true("brokercluster", "east", "Ready"), 120, "the cluster to be ready")
    crowd = Crowd(installed, "crowd", "east", SUBSCRIBERS, PER_SECOND)
    yield Matrix(installed, crowd)
    found = crowd.verdict()
    print(found)
    assert (found["lost"], found["duplicated"], found["reordered"], found["gaps"]) == (0, 0, 0, 0), found
    assert found["ok"], found
    assert found["delivered"] >= SUBSCRIBERS * found["sent"]


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: "-".join(cell))
def test_a_killed_process_in_a_session_loses_nothing(matrix: Matrix, cell: Cell):
    victim, state = cell
    found = matrix.kill(victim, state)
    print(f"{victim} in {state}: {found}")
    assert found.seen == state or state not in HELD
    assert victim != "operator" or found.phase == "Succeeded", "the next operator goes on with it"
