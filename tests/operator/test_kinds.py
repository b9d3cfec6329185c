"""Paths of the API server, and names of resources in rules."""

from __future__ import annotations

import pytest

from plimsoll.core.spec import API_VERSION
from plimsoll.core.spec.kinds import WRITTEN_KINDS
from plimsoll.mediator.fleet_resources import BROKER_KINDS
from plimsoll.operator import kinds


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        (("Pod", "one", "a-0"), "/api/v1/namespaces/one/pods/a-0"),
        (("Pod",), "/api/v1/pods"),
        (("StatefulSet", "one"), "/apis/apps/v1/namespaces/one/statefulsets"),
        (("BrokerFleet", "one", "f", "status"), f"/apis/{API_VERSION}/namespaces/one/brokerfleets/f/status"),
        (("Namespace", "", "one"), "/api/v1/namespaces/one"),
        (("Namespace", "ignored", "one"), "/api/v1/namespaces/one"),
        (("ConfigMap", "one", "a/b"), "/api/v1/namespaces/one/configmaps/a%2Fb"),
    ],
)
def test_paths(asked, path):
    assert kinds.api_path(*asked) == path


def test_every_kind_of_ours_is_known():
    assert set(kinds.API_KINDS) >= {*BROKER_KINDS, "LoadBalancingSession", *WRITTEN_KINDS}


def test_resources_are_named_as_in_roles():
    assert kinds.rule_resource("PodDisruptionBudget") == "poddisruptionbudgets"
    assert kinds.rule_resource("EdgeBroker", "status") == "edgebrokers/status"


def test_an_unknown_kind_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError, match="Gadget"):
        kinds.api_path("Gadget")
