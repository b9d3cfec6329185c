"""The processor time of processes: from `/proc` on Linux, from `ps` elsewhere, and unknown without either."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from plimsoll.demo.analysis.machine_load import ProcessorTimes

_PROC = Path("/proc")
_IDLE = (3, 4)  # idle and iowait, of the fields of /proc/stat after "cpu"
_GUEST = (8, 9)  # guest time is already in user time
_CLOCK = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")


class _Process(NamedTuple):
    parent: int
    seconds: float


def processor_times() -> ProcessorTimes | None:
    """One sample, or None where the system gives no figures."""
    if (_PROC / "stat").exists():
        found = _from_proc()
        busy = _busy_seconds((_PROC / "stat").read_text())
    else:
        found = _from_ps()
        busy = sum(process.seconds for process in found.values())
    if not found:
        return None
    return ProcessorTimes(time.monotonic(), busy, own_seconds(found, os.getpid()))


def own_seconds(processes: Mapping[int, _Process], root: int) -> dict[int, float]:
    """Of a process and all its descendants, by process id."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    own: dict[int, float] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid in own or pid not in processes:
            continue
        own[pid] = processes[pid].seconds
        waiting += children.get(pid, [])
    return own


def _busy_seconds(stat: str) -> float:
    ticks = [int(word) for word in stat.splitlines()[0].split()[1:]]
    busy = sum(count for i, count in enumerate(ticks) if i not in (*_IDLE, *_GUEST))
    return busy / os.sysconf("SC_CLK_TCK")


def _from_proc() -> dict[int, _Process]:
    tick = os.sysconf("SC_CLK_TCK")
    found: dict[int, _Process] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):  # it has ended since the folder was listed
            continue
        words = text[text.rindex(")") + 2 :].split()  # the name before them may hold spaces and brackets
        found[int(entry.name)] = _Process(int(words[1]), (int(words[11]) + int(words[12])) / tick)
    return found


def _from_ps() -> dict[int, _Process]:
    try:
        answer = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,time="], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return {}  # unknown: the report says so in place of the figures
    return parse_ps(answer.stdout)


def parse_ps(text: str) -> dict[int, _Process]:
    """Lines of `pid ppid time`, with times as `[days-][hours:]minutes:seconds`."""
    found: dict[int, _Process] = {}
    for line in text.splitlines():
        words = line.split()
        clock = _CLOCK.fullmatch(words[2]) if len(words) == 3 else None
        if clock is None:
            continue
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        found[int(words[0])] = _Process(int(words[1]), ((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    return found
