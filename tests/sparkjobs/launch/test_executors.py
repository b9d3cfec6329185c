"""What a driver needs for executors: settings that a program in Python reads as they were given."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from plimsoll.sparkjobs.launch import executors
from plimsoll.sparkjobs.launch.spec import SUBMIT_VARIABLE, SparkLaunch

LAUNCH = SparkLaunch(fleet="tide", namespace="prod", image="plimsoll/spark:1", claim="telemetry", executors=3)


def test_a_program_in_python_is_given_all_settings_by_a_variable():
    pytest.importorskip("pyspark")
    from plimsoll.sparkjobs.spark_session import user_settings

    *before, given = executors.python_environment(LAUNCH)
    assert [each["name"] for each in before] == ["POD_NAME", "POD_IP"], "variables that a later one names come first"
    assert given["value"].split()[-1] == "pyspark-shell"
    found = user_settings({SUBMIT_VARIABLE: given["value"]})
    here = {"spark.driver.host": "$(POD_IP)", "spark.driver.bindAddress": "$(POD_IP)"}
    assert found == {**executors.driver_settings(LAUNCH), **here}
    assert " " in found["spark.driver.extraJavaOptions"], "options of Java keep their spaces"


def test_a_changed_template_has_another_hash():
    other = replace(LAUNCH, claim="other")
    assert executors.template_hash(LAUNCH) == executors.template_hash(replace(LAUNCH, executors=7))
    assert executors.template_hash(LAUNCH) != executors.template_hash(other)
    text = executors.executor_template(other)["data"][executors.TEMPLATE_FILE]
    assert msgspec.json.decode(text) == executors.executor_pod(other)


def test_all_pods_are_pulled_with_the_same_secrets():
    name = "spark.kubernetes.container.image.pullSecrets"
    assert executors.common_settings(replace(LAUNCH, pull_secrets=("a", "b")))[name] == "a,b"
    assert name not in executors.common_settings(LAUNCH)
