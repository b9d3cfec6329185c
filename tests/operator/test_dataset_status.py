"""What the status of feeds and channels says, by their pods and by what these say of themselves."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.operator.dataset_world import dataset_world
from tests.operator.world import World

from plimsoll.channels.config import ChannelFigures, DriverFigures
from plimsoll.feeds.config import RecorderFigures
from plimsoll.operator import dataset_status, status
from plimsoll.operator.dataset_status import NoFigures, channel_status, feed_status
from plimsoll.operator.objects.spark_jobs import SparkObstacle

TIME = "2026-01-01T00:00:00Z"
RECORDED = RecorderFigures("/data/feeds/reports", 1, 1, 3, 1, 12, 10, 2, 0, 0, 1, 900)
CHANNELS = {"fires": ChannelFigures("ChannelRunning", "m", batch=4), "floods": ChannelFigures("QueryInvalid", "line 1")}


class Figures(NoFigures):
    def recorder(self, name: str) -> RecorderFigures | None:
        return RECORDED if name == "stocks-recorder-reports" else None

    def driver(self, name: str) -> DriverFigures | None:
        return DriverFigures(1, 1, CHANNELS) if name == "stocks-channels" else None


def put_container(world: World, name: str, container: str, **state: Any) -> None:
    world.objects["Pod", f"{name}-0"]["status"]["containerStatuses"] = [{"name": container, **state}]


def told(world: World, kind: str, name: str, figures: NoFigures) -> tuple[dict[str, Any], str, str]:
    made = feed_status if kind == "Feed" else channel_status
    found = made(world.desired().resources, world.observed(), figures, world.objects[kind, name], TIME)
    (condition,) = found["conditions"]
    return found, condition["status"], condition["reason"]


@pytest.fixture
def world() -> World:
    found = dataset_world()
    put_container(found, "stocks-recorder-reports", "recorder", state={"running": {}}, restartCount=2)
    put_container(found, "stocks-channels", "channels", state={"running": {}})
    return found


def test_a_recorder_that_answers_records(world: World):
    found, is_true, reason = told(world, "Feed", "reports", Figures())
    assert (is_true, reason) == ("True", "RecorderAttached")
    assert (found["rows"], found["pod"], found["restarts"]) == (10, "stocks-recorder-reports-0", 2)


def test_one_that_says_nothing_keeps_its_last_figures_and_is_not_said_to_record(world: World):
    world.objects["Feed", "reports"]["status"] = told(world, "Feed", "reports", Figures())[0]
    found, is_true, reason = told(world, "Feed", "reports", NoFigures())
    assert (is_true, reason, found["rows"]) == ("False", "RecorderStarting", 10)


def test_the_query_of_each_channel_has_its_own_verdict(world: World):
    assert told(world, "Channel", "fires", Figures())[1:] == ("True", "ChannelRunning")
    found, is_true, reason = told(world, "Channel", "floods", Figures())
    assert (is_true, reason, found["conditions"][0]["message"]) == ("False", "QueryInvalid", "line 1")


def test_why_a_pod_does_not_run_is_said(world: World):
    ended = {"terminated": {"reason": "Error", "exitCode": 3}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    put_container(world, "stocks-recorder-reports", "recorder", state=waiting, lastState=ended)
    found, _, reason = told(world, "Feed", "reports", NoFigures())
    assert (reason, found["lastEnd"]) == ("RecorderExited", "exited with 3")
    put_container(world, "stocks-channels", "channels", state={"waiting": {"reason": "ErrImagePull", "message": "no"}})
    found, _, reason = told(world, "Channel", "fires", NoFigures())
    assert (reason, found["conditions"][0]["message"]) == ("ChannelStarting", "ErrImagePull: no")


def test_a_driver_that_another_operator_has_started_is_found_by_its_label():
    """Kubeflow's and Apache's operators name pods and containers as they like, and may keep those that have ended."""
    world = dataset_world()
    for name, at, state in (("0", "2026-01-01", {"terminated": {"exitCode": 1}}), ("1", "2026-01-02", {"running": {}})):
        pod = copy.deepcopy(world.objects["Pod", "stocks-channels-0"])
        pod["metadata"] |= {"name": f"stocks-channels-{name}-driver", "creationTimestamp": f"{at}T00:00:00Z"}
        world.objects["Pod", pod["metadata"]["name"]] = pod
        pod["status"]["containerStatuses"] = [{"name": "spark-kubernetes-driver", "state": state}]
    del world.objects["Pod", "stocks-channels-0"]
    found, is_true, reason = told(world, "Channel", "fires", Figures())
    assert (is_true, reason, found["pod"]) == ("True", "ChannelRunning", "stocks-channels-1-driver")
    del world.objects["Pod", "stocks-channels-1-driver"]
    found, _, reason = told(world, "Channel", "fires", Figures())
    assert (reason, found["lastEnd"]) == ("ChannelDriverExited", "exited with 1")


def test_what_keeps_the_driver_from_being_launched_is_the_reason(world: World):
    why = SparkObstacle("NotServed", "install it")
    resources, item = world.desired().resources, world.objects["Channel", "fires"]
    found = channel_status(resources, world.observed(), Figures(), item, TIME, why)
    (condition,) = found["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "NotServed", "install it")


def test_without_a_volume_both_say_what_to_do():
    world = dataset_world(datasets={})
    for kind, name in (("Feed", "reports"), ("Channel", "fires")):
        found, is_true, reason = told(world, kind, name, NoFigures())
        assert (is_true, reason) == ("False", "NoDatasetVolume")
        assert "datasets.volumeClaim" in found["conditions"][0]["message"]


def test_counts_alone_are_no_reason_to_write_at_once(world: World):
    item = {**world.objects["Feed", "reports"], "status": told(world, "Feed", "reports", Figures())[0]}
    more = {**item["status"], "rows": 11}
    assert not status.is_due(item, more, 0.0, 10.0)
    assert status.is_due(item, more, 10.0, 10.0)
    assert status.is_due(item, {**more, "restarts": 3}, 0.0, 10.0)
    assert dataset_status.decided(more) == dataset_status.decided(item["status"])
