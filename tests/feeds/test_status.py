"""The condition of a feed."""

from __future__ import annotations

from plimsoll.feeds.config import RecorderFigures
from plimsoll.feeds.status import ProgramState, figures_status, is_fresh, recording_condition

FIGURES = RecorderFigures("/d", 7, 1_000_000, 3, 1_000_000, 12, 10, 2, 0, 0, 1, 900)
RUNNING = ProgramState.of_process({"pid": 7})


def test_the_condition_says_what_the_recorder_does() -> None:
    assert recording_condition(FIGURES, RUNNING).status == "True"
    assert recording_condition(None, RUNNING).reason == "RecorderStarting"
    assert recording_condition(None, ProgramState.of_process({})).reason == "RecorderStarting"
    ended = recording_condition(FIGURES, ProgramState.of_process({"lastEnd": "exited with code 3"}))
    assert (ended.status, ended.reason) == ("False", "RecorderExited")
    assert recording_condition(None, ProgramState(is_running=False, trouble="no node fits")).message == "no node fits"


def test_figures_of_another_process_and_old_ones_are_not_fresh() -> None:
    assert is_fresh((7, 1_000_000), {"pid": 7}, 2_000_000)
    assert not is_fresh((7, 1_000_000), {"pid": 8}, 2_000_000)
    assert not is_fresh((7, 1_000_000), {"pid": 7}, 60_000_000)


def test_fields_of_a_status() -> None:
    assert figures_status(FIGURES)["received"] == 12
