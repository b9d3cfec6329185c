"""A namespace that no operator watches is said to be so, with and without the right to see the operators."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes import client
from tests.cli.api_server import say, served

from plimsoll.cli.operator_watch import WrittenStatus, unwatched_reason


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


def written(renewed: str, code: int = HTTPStatus.OK, name: str = "plimsoll-mediator-f") -> tuple[str, Any]:
    lease = {"metadata": {"name": name}, "spec": {"renewTime": renewed, "holderIdentity": ""}}
    answer = {"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": [lease]}
    with served(lambda handler: say(handler, code, answer)) as port:
        configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
        configuration.retries = 0
        found = WrittenStatus("ns", client.ApiClient(configuration))
        cluster = {"kind": "BrokerCluster", "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        [shown] = found.displayed([cluster])
        return found.note(), shown


def test_a_status_that_no_operator_writes_is_said_and_is_unknown():
    note, shown = written("2020-01-01T00:00:00.000000Z")
    assert note.startswith("no operator has written a status in namespace ns for ")
    assert "kubectl get pods -A -l app.kubernetes.io/name=plimsoll-operator" in note
    [ready] = shown["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "NotWritten")
    assert shown["status"]["writtenSecondsAgo"] > 10**6


@pytest.mark.parametrize(
    ("renewed", "code", "name"),
    [
        ("2999-01-01T00:00:00.000000Z", HTTPStatus.OK, "plimsoll-mediator-f"),
        ("2020-01-01T00:00:00.000000Z", HTTPStatus.OK, "another"),
        ("2020-01-01T00:00:00.000000Z", HTTPStatus.FORBIDDEN, "plimsoll-mediator-f"),
    ],
)
def test_a_status_that_is_written_or_of_which_nothing_can_be_told_is_as_it_is(renewed: str, code: int, name: str):
    note, shown = written(renewed, code, name)
    assert note == ""
    assert shown["status"]["conditions"] == [{"type": "Ready", "status": "True"}]


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
