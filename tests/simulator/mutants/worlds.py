"""Worlds that reach situations which are rare in the scenarios of the simulator.

`SETTINGS` replaces constants of the product and of the simulator, so that a short run reaches a bound or a step; they
apply to runs with a mutant and without. The name of a world is part of its seed, so renaming one changes its runs.
"""

from __future__ import annotations

import traceback
from types import MappingProxyType
from typing import Final

import pytest
from tests.simulator.mutants import durable_worlds, handover_worlds, log_worlds
from tests.simulator.mutants.rewriting import Setting

from plimsoll.core.head import log_reader
from plimsoll.core.head.handover import outcomes
from plimsoll.core.verify import audit_journal
from plimsoll.simulator import run as simulated
from plimsoll.simulator.fault_injection import aimed_faults
from plimsoll.simulator.run import RunOutcome, SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS

_ALL = (*durable_worlds.ALL, *handover_worlds.ALL, *log_worlds.ALL)


def _aimed(
    points: tuple[str, ...], victims: tuple[str, ...], faults: tuple[str, ...] = ("crash", "pause")
) -> tuple[Setting, ...]:
    """Settings that aim the faults of a world at these points and victims."""
    return (
        Setting(aimed_faults, "COMMON_POINTS", points),
        Setting(aimed_faults, "VICTIMS", victims),
        Setting(aimed_faults, "FAULTS", faults),
    )


_LONG_HOLD = (
    *_aimed(("CutRequest", "Installed", "Cut"), ("subscriber",), ("pause",)),
    Setting(simulated, "MEASURE_SECONDS", 0.1),
)
_SLICES = (Setting(log_reader, "FETCH_SLICE_ENTRIES", 3),)
SETTINGS: Final = MappingProxyType(
    {
        "slices": _SLICES,
        "slow-cut": _SLICES,
        "batch-replay": _SLICES,
        "stale-commands": (Setting(outcomes, "REMEMBERED_SESSIONS", 2),),
        "reborn": _aimed(("Attach", "TargetAttached", "Install"), ("subscriber", "target"), ("crash", "pause")),
        "reborn-across": _aimed(
            ("Attach", "TargetAttached", "Install", "CutRequest"), ("subscriber", "subscriber", "target", "target-head")
        ),
        "walled-target": _aimed(("Attach", "TargetAttached", "Install"), ("target", "subscriber"), ("wall", "one-way")),
        "slow-mediator": _aimed(
            ("Attach", "TargetAttached", "Slot", "Install"), ("source", "target"), ("crash", "crash", "pause")
        ),
        "split-report": (
            *_aimed(("Resume", "Moved", "Revoke"), ("head",), ("crash",)),
            Setting(aimed_faults, "DELAYS_SECONDS", (0.0, 0.004, 0.02, 0.05, 0.1)),
        ),
        "long-hold": _LONG_HOLD,
        "long-hold-across": _LONG_HOLD,
        "held-gap": _LONG_HOLD,
        "lag-at-the-cut": _aimed(("Install", "CutRequest"), ("source",), ("pause",)),
        "cut-source": _aimed(("Cut", "End"), ("source",)),
        "lost-source": (
            *_aimed(("Cut", "End"), ("source",), ("crash",)),
            Setting(aimed_faults, "DELAYS_SECONDS", (0.01, 0.02, 0.05, 0.1)),
        ),
        "lost-target": _aimed(("Cut", "Installed", "Marker", "End"), ("target",), ("crash",)),
        "overtaken": _aimed(("Resume", "Moved"), ("target", "link"), ("wall", "one-way")),
    }
)
WORLDS: Final = MappingProxyType({**SCENARIOS, **{one.name: one for one in _ALL}})
OWN: Final = tuple(one.name for one in _ALL)
"""The worlds that are not scenarios of the simulator."""

CALM: Final = ("calm-drain", "calm-replay", "calm-across")
"""Worlds without faults and with enough time, so that every member that is cut must end as `moved`."""


def run(world: str, seed: int) -> RunOutcome:
    """Run a world under a seed; an exception of a machine is part of the outcome."""
    with pytest.MonkeyPatch.context() as patch:
        for setting in SETTINGS.get(world, ()):
            patch.setattr(setting.owner, setting.name, setting.value)
        one = SimulationRun(WORLDS[world], seed)
        try:
            return one.go()
        except Exception:  # noqa: BLE001  # any exception of a machine is a failed run
            return one._outcome(audit_journal([]), traceback.format_exc())


def broken(world: str, outcome: RunOutcome) -> set[str]:
    """The laws that a run has broken; `calm`: in a world of CALM a member that was cut did not arrive."""
    is_hindered = world in CALM and outcome.handovers.keys() & {"detached", "returned", "unknown", "failed", "open"}
    return outcome.broken | ({"calm"} if is_hindered else set())
