"""A survey on Kubernetes: which pod runs it, with which words, and what each refusal comes to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ProtocolError

from plimsoll.cli import kubernetes_survey
from plimsoll.mediator.world.traffic_survey import SurveyError, TrafficSurvey, encode_survey

FOUND = TrafficSurvey({}, {"e": {"s": ("[a,=,1]",)}})


def pod(name: str, namespaces: str = "", phase: str = "Running") -> Any:
    environment = [SimpleNamespace(name="PLIMSOLL_NAMESPACES", value=namespaces)]
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name, namespace="plimsoll"), status=SimpleNamespace(phase=phase),
        spec=SimpleNamespace(containers=[SimpleNamespace(env=None), SimpleNamespace(env=environment)]),
    )  # fmt: skip


class Cluster:
    """An API server with these pods, in which the program writes and ends as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pods = [pod("operator-1")]
        self.said, self.faults, self.code, self.is_open = encode_survey(FOUND).decode(), "", 0, False
        self.refusal: Exception | None = None
        self.ran: list[tuple[str, str, list[str]]] = []
        self.is_closed = False
        monkeypatch.setattr(client, "CoreV1Api", lambda _: self)
        monkeypatch.setattr(kubernetes_survey, "stream", self.stream)

    def list_pod_for_all_namespaces(self, **_: Any) -> Any:
        return SimpleNamespace(items=self.pods)

    def connect_get_namespaced_pod_exec(self) -> None:
        raise AssertionError("only `stream` may call it")

    def stream(self, call: Any, name: str, namespace: str, *, command: list[str], **_: Any) -> Any:
        assert call == self.connect_get_namespaced_pod_exec
        if self.refusal is not None:
            raise self.refusal
        self.ran.append((namespace, name, command))
        return SimpleNamespace(
            run_forever=lambda timeout: None, read_stdout=lambda timeout: self.said, is_open=lambda: self.is_open,
            read_stderr=lambda timeout: self.faults, close=self.close, returncode=self.code,
        )  # fmt: skip

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def cluster(monkeypatch) -> Cluster:
    return Cluster(monkeypatch)


def ask(cluster: str = "") -> TrafficSurvey:
    return kubernetes_survey.survey(client.ApiClient(), "ships", cluster, 12.5)


def test_it_runs_in_the_pod_of_the_operator_that_watches_the_namespace(cluster):
    cluster.pods = [pod("a", "other"), pod("b", phase="Pending"), pod("d", "docks,ships"), pod("c", "ships")]
    assert ask("east") == FOUND
    assert ask() == FOUND
    program = ["python", "-m", "plimsoll.operator.survey", "ships", "12.5"]
    assert cluster.ran == [("plimsoll", "c", [*program, "east"]), ("plimsoll", "c", program)]
    assert cluster.is_closed


def test_no_operator(cluster):
    cluster.pods = [pod("a", "other")]
    with pytest.raises(SurveyError, match="no pod of an operator runs that watches namespace ships"):
        ask()


def test_a_missing_right_says_what_to_do(cluster):
    cluster.refusal = ApiException(status=403, reason="Forbidden")
    with pytest.raises(SurveyError, match="Forbidden; ask for that right, or add --from-status"):
        ask()


def test_an_api_server_that_is_away(cluster):
    cluster.refusal = ProtocolError("connection broken")
    with pytest.raises(SurveyError, match="the API server does not answer: connection broken"):
        ask()


def test_a_survey_that_fails(cluster):
    cluster.code, cluster.faults = 1, "warning\ne does not answer\n"
    with pytest.raises(SurveyError, match=r"^e does not answer$"):
        ask()
    cluster.faults = ""
    with pytest.raises(SurveyError, match="plimsoll/operator-1 failed without a word"):
        ask()


def test_a_survey_that_takes_too_long(cluster):
    cluster.is_open = True
    with pytest.raises(SurveyError, match="took longer than 60 s"):
        ask()
    assert cluster.is_closed


def test_an_operator_of_another_version(cluster):
    cluster.said = "{}"
    with pytest.raises(SurveyError, match="may be of another version"):
        ask()
