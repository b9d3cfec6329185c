from __future__ import annotations

from plimsoll.mediator.steady_clock import SteadyClock


def test_time_does_not_step_while_a_session_is_open():
    of_day, since_boot = [1_000.0], [50.0]
    clock = SteadyClock(lambda: of_day[0], lambda: since_boot[0])
    assert clock.now(is_busy=True) == 1_000.0
    for step in (86_400.0, -2 * 86_400.0):
        before = clock.now(is_busy=True)
        of_day[0] += step
        since_boot[0] += 3.0
        assert clock.now(is_busy=True) == before + 3.0
    assert clock.now(is_busy=False) == of_day[0], "with none open the time of day is right again"
    assert clock.now(is_busy=True) == of_day[0]
