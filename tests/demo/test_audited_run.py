"""How a run ends that was refused, interrupted or broken: with a sentence and a code."""

import pytest

from plimsoll.demo.audited_run import RunDirector, exit_code
from plimsoll.demo.fleet import DemoFleetError
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.local.storage.fleet_folder import FleetBusyError


def raising(error):
    def run():
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code"), [(FleetBusyError("busy"), 4), (KeyboardInterrupt(), 130), (DemoFleetError("no start"), 1)]
)
def test_what_stops_a_run_has_a_code(error, code):
    assert exit_code(LiveDisplay(lambda _: None, False, 1.0), raising(error)) == code


def test_a_run_that_ends_has_its_own_code_and_a_fault_of_the_program_is_not_hidden():
    live = LiveDisplay(lambda _: None, False, 1.0)
    assert exit_code(live, lambda: 1) == 1
    with pytest.raises(ZeroDivisionError):
        exit_code(live, raising(ZeroDivisionError()))


def test_without_a_director_every_death_is_a_fault():
    assert RunDirector().unexpected(["e-0: was killed"]) == ["e-0: was killed"]
