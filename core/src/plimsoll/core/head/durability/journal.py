"""What a head has to write to its disk, gathered in a round; and what it begins with when it has read its log.

A shell takes `pending` at the end of a round, writes it as one batch, and lets nothing of the round leave before it is
safe (`sync: Always`) or before it is written (`Interval`). So a head that dies has told no other process anything
that its log does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from plimsoll.core.head.durability.durable_log import READ_BYTES, DurableLog, LogArchive
from plimsoll.core.head.durability.log_state import EpochTable, LogState
from plimsoll.core.head.durability.records import (
    DiskRecord,
    EpochBegan,
    GroupNamed,
    Logged,
    NumberRefused,
    PublisherKnown,
    entries_of,
)
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin


class RecoveredLog(NamedTuple):
    """What a shell gives a head that keeps its log: where older entries are, and what the disk says.

    `is_whole`: nothing can be missing that the head had told others. `boot`: which start of the operating system this
    is, if that is known: only with it ends what was written and not synced.
    """

    archive: LogArchive
    first: int
    gone: dict[Origin, int]
    state: LogState
    is_whole: bool = True
    is_synced: bool = True
    boot: str = ""


class LogJournal:
    """`refusing`: why no publication can be accepted now; empty if they can.

    `is_binding`: this round has begun an epoch or logged a gap: neither may be told to others and then be forgotten,
    so the round waits for its sync even with `Interval`.
    """

    def __init__(self, recovered: RecoveredLog, name: str, epoch: int, *, has_neighbors: bool) -> None:
        self.state, self.archive = recovered.state, recovered.archive
        self.pending: list[DiskRecord] = []
        self.refusing = ""
        before = self.state.epochs[-1] if self.state.epochs else None
        self.earlier = before.epoch if before else 0
        is_same = before is not None and recovered.is_whole
        self.memory = before.memory if before and is_same else epoch
        self.is_unsure = before is not None and not is_same
        began = EpochBegan(
            epoch, self.state.position + 1, self.memory, recovered.boot, has_neighbors, recovered.is_synced
        )
        self.pending.append(began)
        self.is_binding = True
        self.epochs = EpochTable([*self.state.epochs, began])

    def wait_for_syncs(self, *, is_synced: bool) -> None:
        """From this round on all waits for syncs, or no longer all (tests/exploration/confirm_switch.py).

        The log says so before it counts: it tells a recovery whether something may have been forgotten.
        """
        began = msgspec.structs.replace(self.epochs.epochs[-1], is_synced=is_synced)
        if began != self.epochs.epochs[-1]:
            self.epochs.epochs[-1] = began
            self.pending.append(began)
            self.is_binding = True

    def take(self) -> list[DiskRecord]:
        """What this round has to write, as one batch."""
        records, self.pending = self.pending, []
        self.is_binding = False
        return records

    @property
    def has_all(self) -> bool:
        """Whether the log has all that subscribers were due before this start, whatever they had asked for.

        It has not with neighbours, which send what is asked for; nor with consumer groups, as publications are to have
        their stamps.
        """
        epochs = self.epochs.epochs
        alone = self.epochs.was_alone_since(epochs[0].epoch)
        return bool(self.earlier) and not self.is_unsure and alone and self.state.group_names == set()

    @property
    def began_behind(self) -> int:
        """The last position of the epochs before this one."""
        return self.epochs.epochs[-1].first - 1

    def goes_on_from(self, epoch: int, position: int, end: int) -> int | None:
        """Where one that has had this position of an epoch goes on in a log that ends at `end`.

        None if it has had more than the log has of that epoch, or the log does not know the epoch.
        """
        last = self.epochs.last_of(epoch, end)
        return position if last is not None and position <= last else None

    def records_after(self, position: int) -> Iterator[tuple[int, Logged]]:
        """All that was logged after a position, what this round has still to write included.

        Raises:
            UnreadableLogError: some of it is damaged.

        """
        while found := self.archive.records(position + 1, READ_BYTES):
            yield from found
            position = found[-1][0]
        yield from entries_of(self.pending, position + 1)

    # -- what is written

    def logged(self, record: bytes, source: str = "", heard: tuple[int, int] = (0, 0)) -> None:
        """An entry. `heard`: the epoch of the neighbour that sent it, and the position in its log."""
        self.pending.append(Logged(record, source, *heard))

    def gap(self, record: bytes, source: str, heard: tuple[int, int]) -> None:
        """The same for a gap."""
        self.logged(record, source, heard)
        self.is_binding = True

    def publisher(self, known: PublisherKnown) -> None:
        self.pending.append(known)

    def group(self, name: str, *, is_served: bool) -> None:
        self.pending.append(GroupNamed(name, is_served))

    def refused(self, publisher: str, incarnation: int, refused: msg.Refused) -> None:
        self.pending.append(NumberRefused(publisher, incarnation, refused.seq, refused.code, refused.text))


def exceptions_of(kept: Iterable[NumberRefused], edges: list[str]) -> Iterable[msg.Refused | msg.Unconfirmed]:
    """The answers that are exceptions to cumulative acceptance.

    Of what waited for edges it is not known any more which have it, so all are named.
    """
    for each in kept:
        if each.code:
            yield msg.Refused(0, each.seq, each.code, each.text)
        else:
            yield msg.Unconfirmed(0, each.seq, edges)


def durable_log(recovered: RecoveredLog, limit_bytes: int) -> DurableLog:
    """The log of a head that begins with what its disk has."""
    return DurableLog(
        limit_bytes, recovered.archive, first=recovered.first, last=recovered.state.position, gone=recovered.gone
    )
