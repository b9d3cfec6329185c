"""The covering set of a source's rows, as far as samples show: the rows whose samples no other row fully matches.

Rows that match the same samples do not cover each other. Removing a row uncovers those that it alone covered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plimsoll.core.policies.model.profile import ProfileRow


class MaximalRows:
    """`rows`: the rows that no other one covers, by key."""

    def __init__(self, rows: Iterable[ProfileRow]) -> None:
        self.rows: dict[str, ProfileRow] = {}
        self._below: dict[str, list[ProfileRow]] = {}
        self._file(rows)

    def remove(self, key: str) -> None:
        """Remove one of them; the rows that only it covered join `rows`."""
        del self.rows[key]
        self._file(self._below.pop(key, ()))

    def covered(self) -> Iterator[tuple[ProfileRow, str]]:
        """Each covered row, with the key of one that covers it."""
        return ((row, key) for key, rows in self._below.items() for row in rows)

    def _file(self, rows: Iterable[ProfileRow]) -> None:
        for row in sorted(rows, key=lambda row: (-row.bits.bit_count(), row.key)):
            coverer = next((top for top in self.rows.values() if _covers(top, row)), None)
            if coverer is None:
                self.rows[row.key] = row
            else:
                self._below.setdefault(coverer.key, []).append(row)


def _covers(one: ProfileRow, other: ProfileRow) -> bool:
    return not other.bits & ~one.bits and one.bits != other.bits
