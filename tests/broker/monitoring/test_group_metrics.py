"""Series of consumer groups: of groups and their slices, never of a consumer."""

from __future__ import annotations

from typing import Any

from tests.core.group_play import GROUP, GroupPlay

from plimsoll.broker.monitoring.group_metrics import group_metrics


def samples(report: dict[str, Any]) -> dict[tuple[str, ...], float]:
    return {
        (sample.name.removeprefix("plimsoll_broker_group_"), *sample.labels.values()): sample.value
        for family in group_metrics(report)
        for sample in family.samples
    }


def test_without_groups_there_is_no_series() -> None:
    assert samples({}) == {}


def test_a_group_its_slices_and_its_events() -> None:
    play = GroupPlay(count=3)
    play.join("a", work=0.2)
    play.run(1.0)
    for n in range(30):
        play.publish(n)
    play.run(2.5)
    found = samples(dict(play.fleet.head().reporter.last))
    assert (found["slices", GROUP], found["consumers", GROUP], found["slices_without_consumer", GROUP]) == (3, 1, 0)
    assert sum(found["slice_backlog_items", GROUP, str(n)] for n in range(3)) == found["backlog_items", GROUP] > 0
    assert sum(found["slice_lag_items", GROUP, str(n)] for n in range(3)) == found["lag_items", GROUP] > 0
    assert 0 < found["busy_consumers", GROUP] < 1.1
    assert found["events_total", GROUP, "joined"] == 1
    assert not any("a" in name[1:] for name in found)
