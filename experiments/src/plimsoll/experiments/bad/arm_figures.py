"""Figures of BAD's experiments: arms side by side over time, and the brokers of one arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plimsoll.experiments.bad.arm import ArmRun, LoadPoint
from plimsoll.experiments.result import Figure
from plimsoll.experiments.world_run import thinned
from plimsoll.pages.charts import Chart, ChartLine

KILO: Final = 1000.0
LOOKS: Final = 8
POINTS_AT_MOST: Final = 90


def _lines(runs: Sequence[ArmRun], value: str, scale: float) -> list[ChartLine]:
    return [
        ChartLine(run.arm.name, look % LOOKS, thinned([(p.seconds, _value(p, value) / scale) for p in run.points],
                                                      POINTS_AT_MOST))
        for look, run in enumerate(runs)
    ]  # fmt: skip


def _value(point: LoadPoint, name: str) -> float:
    return float(getattr(point, name))


def comparison(name: str, runs: Sequence[ArmRun], where: str) -> list[Figure]:
    """Highest load, cov and migrations of these arms over time; each figure's name begins with `name`."""
    return [
        Figure(f"{name}a", Chart(f"Highest broker load, {where}", "kB/s", _lines(runs, "highest", KILO)),
               "BAD 2019: max broker load, F = I + O."),
        Figure(f"{name}b", Chart(f"cov, {where}", "ratio", _lines(runs, "cov", 1.0)),
               "BAD 2019: the deviation of the brokers' loads over their mean."),
        Figure(f"{name}c", Chart(f"Migrations, {where}", "subscribers", _lines(runs, "moved", 1.0)),
               "BAD 2019: subscribers moved up to a time."),
    ]  # fmt: skip


def brokers(name: str, run: ArmRun) -> Figure:
    """The load of each broker over time."""
    lines = [
        ChartLine(broker, look % LOOKS, thinned([(p.seconds, p.loads[broker] / KILO) for p in run.points],
                                                POINTS_AT_MOST))
        for look, broker in enumerate(sorted(run.points[0].loads), 1)
    ]  # fmt: skip
    return Figure(name, Chart(f"Load of each broker, {run.arm.name}", "kB/s", lines), "BAD 2019: broker load.")
