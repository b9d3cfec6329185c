"""Separates a broker's new reports from duplicates and from those too old to decide: pure, bounded, per broker.

A report is identified by (epoch, seq). Reports may overtake each other a little, so the last WINDOW numbers of an epoch
are remembered one by one; older ones are late. A lower epoch is late, too, unless the higher one has been silent for a
while: then the broker has restarted with its clock set back, and the higher epoch must not lock it out.
"""

from __future__ import annotations

from typing import Final, Literal

SequenceVerdict = Literal["counted", "duplicate", "late"]

WINDOW: Final = 128
SILENT_US: Final = 60_000_000
PAST_EPOCHS: Final = 4
_MASK: Final = (1 << WINDOW) - 1


class ReportSequence:
    """The reports seen of one broker. `bits`: bit i is set if `seq - i` was seen."""

    __slots__ = ("bits", "epoch", "heard_us", "past", "seq")

    def __init__(self) -> None:
        self.epoch = -1
        self.seq = 0
        self.bits = 0
        self.heard_us = 0
        self.past: tuple[int, ...] = ()

    def classify(self, epoch: int, seq: int, now_us: int) -> SequenceVerdict:
        """Whether a report that came at `now_us` is new; if so, remember it."""
        if epoch != self.epoch:
            return self._classify_epoch(epoch, seq, now_us)
        behind = self.seq - seq
        if behind >= WINDOW:
            return "late"
        if behind >= 0:
            if self.bits >> behind & 1:
                return "duplicate"
            self.bits |= 1 << behind
        else:
            self.bits = (self.bits << min(-behind, WINDOW) & _MASK) | 1
            self.seq = seq
        self.heard_us = now_us
        return "counted"

    def _classify_epoch(self, epoch: int, seq: int, now_us: int) -> SequenceVerdict:
        if epoch < self.epoch and (epoch in self.past or now_us - self.heard_us <= SILENT_US):
            return "late"
        if self.epoch >= 0:
            self.past = (*self.past, self.epoch)[-PAST_EPOCHS:]
        self.epoch, self.seq, self.bits, self.heard_us = epoch, seq, 1, now_us
        return "counted"
