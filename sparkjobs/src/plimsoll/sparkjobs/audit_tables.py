"""Makes the tables of the audit job from observations: accepted publications, subscriptions, deliveries and gaps.

Times are seconds on the journal's clock. `python -m plimsoll.sparkjobs.audit_tables FILE... --output FOLDER` reads
journals of JSON lines; for observations from elsewhere call `write_tables`. Each call adds a file to every table, so
the parts of a run make one audit. A part must have all observations of its subscribers.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from plimsoll.core.printable import printable_lines
from plimsoll.core.verify import Observation
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.audit import LawAudit
from plimsoll.core.verify.histories import FOREVER, ObservedHeadTree, SubscriptionHistory
from plimsoll.core.verify.observations import decode_lines

ACCEPTED: Final = (
    "publisher STRING, incarnation BIGINT, seq BIGINT, attributes STRING, head STRING, head_epoch BIGINT,"
    " origin_offset BIGINT, at DOUBLE"
)
"""`attributes` is JSON. `at`: when a head logged it or, without such an observation, when it was published. `head`,
`head_epoch` and `origin_offset` are null if no delivery and no log entry names its origin."""
SUBSCRIPTIONS: Final = (
    "subscriber STRING, incarnation BIGINT, predicates STRING, requested_at DOUBLE, live_from DOUBLE,"
    " live_until DOUBLE, due_until DOUBLE, forgotten_at DOUBLE, not_from ARRAY<STRING>"
)
"""A row for each acknowledgement of a subscription. Publications accepted from `live_from` until before `live_until`,
when a later acknowledgement replaced it, must be delivered, at the latest by `due_until`, when the subscription was
withdrawn or void. Without an acknowledgement the interval is empty. `predicates` is JSON; `not_from`: heads that it did
not reach."""
DELIVERED: Final = (
    "subscriber STRING, incarnation BIGINT, place BIGINT, publisher STRING, publisher_incarnation BIGINT, seq BIGINT,"
    " at DOUBLE"
)
"""`place` numbers the deliveries of an incarnation of a subscriber in their order."""
GAPS: Final = "subscriber STRING, incarnation BIGINT, after BIGINT, head STRING, head_epoch BIGINT, last_offset BIGINT"
"""The last offset of an origin in a gap that was reported after the first `after` deliveries."""
TABLES: Final = {"accepted": ACCEPTED, "subscriptions": SUBSCRIPTIONS, "delivered": DELIVERED, "gaps": GAPS}

_TYPES: Final = {
    "STRING": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "ARRAY<STRING>": pa.list_(pa.string()),
}  # fmt: skip
TableRow = dict[str, Any]


def table_rows(observations: Iterable[Observation]) -> Mapping[str, Iterator[TableRow]]:
    """The rows of each table, by its name."""
    audit = LawAudit()
    filters: dict[int, str] = {}
    for one in observations:
        audit.take(one)
        if isinstance(one, seen.SubscriptionObserved):
            filters[audit.subscribers.filters.number(one.predicates)] = msgspec.json.encode(one.predicates).decode()
    return {
        "accepted": _accepted_rows(audit),
        "subscriptions": _subscription_rows(audit, filters),
        "delivered": _delivered_rows(audit),
        "gaps": _gap_rows(audit),
    }


def _accepted_rows(audit: LawAudit) -> Iterator[TableRow]:
    for one in audit.publishers.publications.all:
        if one.is_accepted and one.attributes is not None:
            publisher, incarnation, seq = one.identity
            head, epoch, offset = one.origin or (None, None, None)
            yield {
                "publisher": publisher, "incarnation": incarnation, "seq": seq, "head": head, "head_epoch": epoch,
                "origin_offset": offset, "at": one.counts_from,
                "attributes": msgspec.json.encode(one.attributes).decode(),
            }  # fmt: skip


def _subscription_rows(audit: LawAudit, filters: Mapping[int, str]) -> Iterator[TableRow]:
    heads = sorted({name for reader in audit.subscribers.readers.values() for name in reader.heads} | {
        one.origin[0] for one in audit.publishers.publications.all if one.origin
    })  # fmt: skip
    for (name, incarnation), reader in sorted(audit.subscribers.readers.items()):
        ended = audit.ended.get((name, incarnation), FOREVER)
        for life in itertools.chain.from_iterable(reader.lives.values()):
            base = {
                "subscriber": name, "incarnation": incarnation, "requested_at": life.requested_at,
                "forgotten_at": life.forgotten_at,
                "predicates": filters[life.filter],
            }  # fmt: skip
            for time in _lifetime_rows(life, ended, audit.tree, heads):
                yield {**base, **time}


def _lifetime_rows(
    life: SubscriptionHistory, ended: float, tree: ObservedHeadTree, heads: Sequence[str]
) -> Iterator[TableRow]:
    if not life.acknowledged:
        nothing = life.requested_at
        yield {"live_from": nothing, "live_until": nothing, "due_until": nothing, "not_from": []}
    starts = [began for began, _, _ in life.acknowledged]
    for (began, head, unreached), following in zip(life.acknowledged, [*starts[1:], FOREVER], strict=False):
        voids = [void for void in life.void_at if void >= began]
        until = max(began, min([life.withdrawn_at, ended, *voids]))
        not_from = [other for other in heads if not tree.reaches(head, other, unreached)]
        yield {"live_from": began, "live_until": min(until, following), "due_until": until, "not_from": not_from}


def _delivered_rows(audit: LawAudit) -> Iterator[TableRow]:
    everything = audit.publishers.publications.all
    for (name, incarnation), reader in sorted(audit.subscribers.readers.items()):
        for place, (number, at) in enumerate(zip(reader.items, reader.times, strict=True)):
            publisher, publisher_incarnation, seq = everything[number].identity
            yield {
                "subscriber": name, "incarnation": incarnation, "place": place, "publisher": publisher,
                "publisher_incarnation": publisher_incarnation, "seq": seq, "at": at,
            }  # fmt: skip


def _gap_rows(audit: LawAudit) -> Iterator[TableRow]:
    for (name, incarnation), reader in sorted(audit.subscribers.readers.items()):
        for reported in reader.gaps:
            for head, epoch, offset in reported.gap.last:
                yield {
                    "subscriber": name, "incarnation": incarnation, "after": reported.after, "head": head,
                    "head_epoch": epoch, "last_offset": offset,
                }  # fmt: skip


def arrow_schema(columns: str) -> pa.Schema:
    """The columns of a table as an Arrow schema."""
    pairs = (column.strip().split(" ", 1) for column in columns.split(","))
    return pa.schema([(name, _TYPES[kind]) for name, kind in pairs])


def write_tables(observations: Iterable[Observation], folder: Path, batch: int = 100_000) -> dict[str, int]:
    """Add observations to the tables below a folder; returns the number of rows by table."""
    written = {}
    for name, found in table_rows(observations).items():
        schema = arrow_schema(TABLES[name])
        (folder / name).mkdir(parents=True, exist_ok=True)
        partial = folder / name / f".{uuid.uuid4().hex}.partial"
        count = 0
        with pq.ParquetWriter(partial, schema, compression="zstd") as file:
            while part := list(itertools.islice(found, batch)):
                file.write_table(pa.Table.from_pylist(part, schema))
                count += len(part)
        partial.replace(partial.with_name(f"{partial.name[1:33]}.parquet"))
        written[name] = count
    return written


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs.audit_tables", description=__doc__)
    parser.add_argument(
        "journals", type=Path, nargs="+", help="files of JSON lines, as plimsoll.core.verify writes them"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder of the tables")
    asked = parser.parse_args(arguments)
    parts = (decode_lines(path.read_bytes().splitlines(keepends=True), str(path)) for path in asked.journals)
    for name, count in write_tables(itertools.chain.from_iterable(parts), asked.output).items():
        sys.stdout.write(printable_lines(f"{name}: {count}\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
