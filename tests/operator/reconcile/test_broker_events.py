"""Events when brokers become ready, when pods go, and when they cannot run; none for what has not changed."""

from dataclasses import replace

from plimsoll.mediator.resource_status import ObservedBroker
from plimsoll.operator.reconcile.broker_events import BrokerEvents

STARTING = ObservedBroker(
    name="e", role="edge", cluster="c", profile="p", data="tcp://e:1", control="tcp://e:2", public_key="k"
)
READY = replace(STARTING, pod="e-0", answer_age=0.1, serving=True)
UNPULLED = replace(STARTING, trouble=("ImagePullBackOff", "Back-off pulling image"))


def told(*looks: dict[str, ObservedBroker]) -> list[tuple[str, str, str]]:
    events = BrokerEvents()
    found = [event for look in looks for event in events.since_last_look(look)]
    return [(event.type, event.reason, event.message) for event in found]


def test_the_first_look_says_nothing():
    assert told({"e": READY}) == []


def test_a_broker_that_becomes_ready():
    assert told({}, {"e": STARTING}, {"e": READY}, {"e": READY}) == [
        ("Normal", "Ready", "e is ready: pod e-0 answers on tcp://e:2"),
    ]


def test_an_image_that_cannot_be_pulled_is_told_of_once():
    assert told({}, {"e": UNPULLED}, {"e": UNPULLED}) == [
        ("Warning", "ImagePullBackOff", "pod e-0 does not run: Back-off pulling image"),
    ]


def test_a_pod_that_goes_alone_and_with_its_broker():
    ended = replace(STARTING, last_end="exited with 1")
    assert told({"e": READY}, {"e": ended}) == [("Normal", "PodGone", "pod e-0 is gone: it exited with 1")]
    assert told({"e": READY}, {}) == [("Normal", "PodGone", "pod e-0 is gone, and e with it")]


def test_a_process_that_was_started_again_in_its_pod_is_told_of():
    again = replace(READY, restarts=2, last_end="was killed by signal 9")
    (event,) = told({"e": READY}, {"e": again}, {"e": again}, {"e": replace(READY, restarts=0)})
    said = "its process was killed by signal 9 and was started again in pod e-0; restarts there: 2"
    assert event == ("Warning", "Exited", said)
    assert "its process has ended and" in told({"e": READY}, {"e": replace(READY, restarts=1)})[0][2]


def test_what_happens_to_the_disk_of_a_head():
    good = replace(READY, role="head", report={"log_sync": "Always"})
    full = replace(good, report={"log_sync": "Always", "log_fault": "no room"})
    assert told({"e": good}, {"e": full}, {"e": full}, {"e": good}) == [
        ("Warning", "LogFull", "no room; publications are refused until there is room"),
        ("Normal", "LogWritten", "e keeps its log on its disk"),
    ]
