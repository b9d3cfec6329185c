"""The covering set of a source's rows, as far as samples tell: those whose samples no other row matches all of.

Rows that match the same samples do not cover each other. A row that is taken away uncovers those that it alone covered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plimsoll.core.policies.profile import Row


class Tops:
    """`rows`: those that none of the others covers, by key."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: dict[str, Row] = {}
        self._below: dict[str, list[Row]] = {}
        self._file(rows)

    def remove(self, key: str) -> None:
        """Take one of them away; what only it covered comes up."""
        del self.rows[key]
        self._file(self._below.pop(key, ()))

    def covered(self) -> Iterator[tuple[Row, str]]:
        """Each of the others, with the key of one that covers it."""
        return ((row, key) for key, rows in self._below.items() for row in rows)

    def _file(self, rows: Iterable[Row]) -> None:
        for row in sorted(rows, key=lambda row: (-row.bits.bit_count(), row.key)):
            coverer = next((top for top in self.rows.values() if _covers(top, row)), None)
            if coverer is None:
                self.rows[row.key] = row
            else:
                self._below.setdefault(coverer.key, []).append(row)


def _covers(one: Row, other: Row) -> bool:
    return not other.bits & ~one.bits and one.bits != other.bits
