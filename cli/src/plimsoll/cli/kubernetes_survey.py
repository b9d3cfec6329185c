"""The survey of a fleet on Kubernetes: a program in the operator's pod, which can reach brokers and has a key for them.

It takes the right to create `pods/exec` in the operator's namespace. A user with it may command all fleets of this
operator, so no right is added here.
"""

from __future__ import annotations

from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream
from urllib3.exceptions import HTTPError

from plimsoll.cli.operator_watch import OPERATORS, watched_namespaces
from plimsoll.mediator.world.traffic_survey import SurveyError, TrafficSurvey, decode_survey

PROGRAM = ("python", "-m", "plimsoll.operator.survey")
REQUEST_SECONDS = 30.0
SURVEY_SECONDS = 60
REMEDY = "ask for that right, or add --from-status, which needs none"


def survey(api: client.ApiClient, namespace: str, cluster: str, over_seconds: float) -> TrafficSurvey:
    """Run the survey, and wait for it.

    Raises:
        SurveyError: no operator can be reached, it is not permitted, or the survey has failed.

    """
    core: Any = client.CoreV1Api(api)
    try:
        found = core.list_pod_for_all_namespaces(label_selector=OPERATORS, _request_timeout=REQUEST_SECONDS).items
        running = [each for each in found if each.status.phase == "Running" and _serves(each, namespace)]
        if not running:
            raise SurveyError(
                f"no pod of an operator runs that watches namespace {namespace}, and only that can ask brokers: "
                "start it, or add --from-status"
            )
        pod = min(running, key=lambda each: (each.metadata.namespace, each.metadata.name)).metadata
        command = [*PROGRAM, namespace, f"{over_seconds:g}", *([cluster] if cluster else [])]
        answer: Any = stream(
            core.connect_get_namespaced_pod_exec, pod.name, pod.namespace, command=command, stdin=False, stdout=True,
            stderr=True, tty=False, _preload_content=False,
        )  # fmt: skip
        answer.run_forever(timeout=SURVEY_SECONDS)
    except ApiException as error:
        raise SurveyError(f"brokers are asked by a program in the operator's pod: {error.reason}; {REMEDY}") from error
    except HTTPError as error:
        raise SurveyError(f"the API server does not answer: {error}") from error
    return _result(answer, pod)


def _serves(pod: Any, namespace: str) -> bool:
    names = watched_namespaces(pod.spec)
    return not names or namespace in names


def _result(answer: Any, pod: Any) -> TrafficSurvey:
    """What the program has written."""
    said, faults = answer.read_stdout(timeout=0) or "", (answer.read_stderr(timeout=0) or "").strip().splitlines()
    is_over = not answer.is_open()
    answer.close()
    if not is_over:
        raise SurveyError(f"the survey in {pod.namespace}/{pod.name} took longer than {SURVEY_SECONDS} s; {REMEDY}")
    if answer.returncode != 0:
        raise SurveyError(faults[-1] if faults else f"the survey in {pod.namespace}/{pod.name} failed without a word")
    return decode_survey(said.encode())
