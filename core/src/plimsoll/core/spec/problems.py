"""What is wrong with a resource, where, and what to do about it.

A problem is a value; `InvalidResourcesError` carries all of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from plimsoll.core.printable import printable

Path = tuple[str | int, ...]


def path_text(path: Path) -> str:
    """Write `("spec", "edges", 0, "profile")` as `spec.edges[0].profile`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True)
class SourceDocument:
    """One loaded mapping with its source lines: `line_of(path)` is the line of the nearest known part."""

    content: object
    file: str = "<input>"
    line_of: Callable[[Path], int | None] = lambda path: None


@dataclass(frozen=True)
class ResourceProblem:
    """One fault: where (`subject` is an object such as `BrokerCluster/quotes`), what was found, what to do."""

    file: str
    line: int | None
    subject: str
    path: Path
    found: str
    remedy: str

    @property
    def sentence(self) -> str:
        """The path, the fault and the remedy in one line, for a condition or an event of the object itself."""
        where = path_text(self.path)
        return printable(f"{where}: {self.found}. {self.remedy}" if where else f"{self.found}. {self.remedy}")

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        where = " ".join(part for part in (self.subject, path_text(self.path)) if part)
        found = f"{place}: {where}: {self.found}" if where else f"{place}: {self.found}"
        return f"{printable(found)}\n    {printable(self.remedy)}" if self.remedy else printable(found)


class InvalidResourcesError(ValueError):
    """The documents do not describe a fleet; `problems` has every fault found, in the order of the documents."""

    def __init__(self, problems: Iterable[ResourceProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def nearest_word(word: str, known: Sequence[str]) -> str | None:
    """The known word that was most likely meant, ignoring case."""
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def suggestion(word: str, known: Sequence[str], what: str) -> str:
    """A remedy for an unknown word."""
    close = nearest_word(word, known)
    if close is not None:
        return f'Did you mean "{close}"?'
    if not known:
        return f"There is no {what} here."
    return f"Known {what}s: {', '.join(sorted(known))}."
