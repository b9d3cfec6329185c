"""A namespace that no operator watches is said to be so, with and without the right to see the operators."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes import client
from tests.cli.api_server import say, served

from plimsoll.cli.operator_watch import unwatched_reason


def deployment(namespaces: str) -> dict[str, Any]:
    container = {"name": "operator", "env": [{"name": "PLIMSOLL_NAMESPACES", "value": namespaces}]}
    template = {"spec": {"containers": [container]}}
    spec = {"selector": {}, "template": template}
    return {"metadata": {"name": "plimsoll", "namespace": "tools"}, "spec": spec}


def reason(*deployments: dict[str, Any], code: int = HTTPStatus.OK, fleets: tuple[dict[str, Any], ...] = ()) -> str:
    answer = {"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {}, "items": list(deployments)}
    with served(lambda handler: say(handler, code, answer)) as port:
        configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
        configuration.retries = 0
        return unwatched_reason("ns", client.ApiClient(configuration), fleets)


@pytest.mark.parametrize("namespaces", ["", "ns", "other,ns"])
def test_a_watched_namespace_needs_no_word(namespaces: str):
    assert reason(deployment("far"), deployment(namespaces)) == ""


def test_what_is_watched_instead_is_named():
    assert reason(deployment("far,east")) == (
        "no operator watches namespace ns: tools/plimsoll watches east, far; add it to `watchNamespaces` of the chart"
    )


def test_a_cluster_without_an_operator():
    assert "there is none in this cluster" in reason()


def fleet(age_seconds: float, **status: Any) -> dict[str, Any]:
    created = (datetime.now(UTC) - timedelta(seconds=age_seconds)).isoformat()
    return {"metadata": {"name": "f", "creationTimestamp": created}, **({"status": status} if status else {})}


def test_without_the_right_to_see_operators_a_fleet_without_a_status_tells():
    forbidden = HTTPStatus.FORBIDDEN
    assert "BrokerFleet/f has no status yet" in reason(code=forbidden, fleets=(fleet(60),))
    assert reason(code=forbidden, fleets=(fleet(1), fleet(60, clusters=1))) == ""
