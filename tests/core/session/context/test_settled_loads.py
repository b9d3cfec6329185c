"""What edges report once loads have settled: the mean of it is the measurement, each report counts once."""

from __future__ import annotations

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.session.context.settled_loads import REPORTS_AT_MOST, SettledLoads


def load(seq: int, used: float, *, epoch: int = 1, subscribers: int = 5) -> BrokerLoad:
    return BrokerLoad(name="a", epoch=epoch, seq=seq, input_utilization=used, subscribers=subscribers)


def test_the_mean_of_all_reports_with_the_subscribers_of_the_last():
    settled = SettledLoads()
    for seq, used, subscribers in ((1, 0.2, 5), (1, 0.2, 5), (2, 0.4, 6)):
        settled.note("u", load(seq, used, subscribers=subscribers))
    found = settled.mean("u", "a")
    assert found is not None
    assert (round(found.input_utilization, 9), found.subscribers) == (0.3, 6)


def test_nothing_is_known_of_others():
    settled = SettledLoads()
    settled.note("u", load(1, 0.2))
    assert settled.mean("u", "b") is None
    assert settled.mean("v", "a") is None


def test_reports_of_an_earlier_process_do_not_count():
    settled = SettledLoads()
    settled.note("u", load(7, 0.9))
    settled.note("u", load(1, 0.1, epoch=2))
    found = settled.mean("u", "a")
    assert found is not None
    assert found.input_utilization == 0.1


def test_the_last_reports_count_and_sessions_that_have_ended_are_forgotten():
    settled = SettledLoads()
    for seq in range(REPORTS_AT_MOST + 10):
        settled.note("u", load(seq, 0.0 if seq < 10 else 0.5))
    found = settled.mean("u", "a")
    assert found is not None
    assert found.input_utilization == 0.5
    settled.keep(set())
    assert settled.mean("u", "a") is None
