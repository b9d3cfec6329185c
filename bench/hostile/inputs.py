"""Hostile input: lists of subscriptions and publications that are allowed, made to be dear, and their mutations.

A genome is a list of genes; a gene is a template of subscriptions with a count and sizes. Everything is drawn from one
seeded generator, so a seed gives the same input.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

FRAME_CHARACTERS = 900_000
"""Of all texts of one genome: they have to fit into a frame of 1 MiB."""


@dataclass(frozen=True)
class Gene:
    """`count` subscriptions of one form; `width` values, pieces or predicates in each, of `length` characters."""

    form: str
    count: int
    width: int
    length: int
    names: int
    """Attributes that the subscriptions are spread over."""


def _values(gene: Gene, i: int) -> list[str]:
    return [f"'{(str(i * 7 + j) * gene.length)[: gene.length]}'" for j in range(gene.width)]


def _in_list(gene: Gene, i: int) -> str:
    return f"[a{i % gene.names},in,({','.join(map(str, range(i, i + gene.width)))})]"


def _in_strings(gene: Gene, i: int) -> str:
    return f"[a{i % gene.names},in,({','.join(_values(gene, i))})]"


def _contains(gene: Gene, i: int) -> str:
    return ",".join(f"[a{i % gene.names},contains,{value}]" for value in _values(gene, i)[:16])


def _ends(gene: Gene, i: int) -> str:
    piece = ("ab" * gene.length)[: gene.length + i % 50]
    return f"[a{i % gene.names},prefix,'{piece}'],[b,suffix,'{piece}{i}']"


def _holes(gene: Gene, i: int) -> str:
    return ",".join(f"[a{i % gene.names},!=,{i + j}]" for j in range(gene.width))


def _bounds(gene: Gene, i: int) -> str:
    return ",".join(f"[a{(i + j) % gene.names},>,{i - j}]" for j in range(gene.width))


def _equalities(gene: Gene, i: int) -> str:
    return ",".join(f"[a{(i * 3 + j) % (gene.names + gene.width)},=,{i % 5}]" for j in range(gene.width))


def _ranges(gene: Gene, i: int) -> str:
    return f"[a{i % gene.names},>,{i}],[a{i % gene.names},<,{i + gene.width}],[b,exists]"


def _broad(gene: Gene, i: int) -> str:
    return f"[a{i % gene.names},exists]"


def _escapes(gene: Gene, i: int) -> str:
    return f"[a{i % gene.names},=,'" + "\\u{41}" * gene.length + f"{i}']"


def _filtered(gene: Gene, i: int) -> str:
    tests = ",".join(f"[a,contains,'{j % 10}']" for j in range(min(gene.length, 16)))
    return f"[a,in,({','.join(_values(gene, i))})],{tests}"


FORMS: dict[str, Callable[[Gene, int], str]] = {
    form.__name__.removeprefix("_"): form
    for form in (
        _in_list, _in_strings, _contains, _ends, _holes, _bounds, _equalities, _ranges, _broad, _escapes, _filtered
    )
}  # fmt: skip


def texts(genome: list[Gene]) -> list[str]:
    """The subscriptions of a genome, cut to what one frame takes."""
    found: list[str] = []
    room = FRAME_CHARACTERS
    for gene in genome:
        for i in range(gene.count):
            text = FORMS[gene.form](gene, i)
            room -= len(text) + 8
            if room < 0 or len(found) == 10_000:
                return found
            if len(text) <= 65_536:
                found.append(text)
    return found


def drawn(draw: random.Random) -> Gene:
    return Gene(
        form=draw.choice(sorted(FORMS)),
        count=draw.choice([1, 10, 100, 1_000, 10_000]),
        width=draw.choice([1, 2, 4, 16, 64, 250, 2_000]),
        length=draw.choice([1, 3, 10, 100, 1_000, 5_000]),
        names=draw.choice([1, 2, 50, 2_000]),
    )


def mutated(genome: list[Gene], draw: random.Random) -> list[Gene]:
    """A copy with one gene more, less, changed or moved."""
    copy = list(genome)
    what = draw.choice(["add", "drop", "change", "change", "change", "move"])
    at = draw.randrange(len(copy))
    if what == "add" and len(copy) < 4:
        copy.insert(at, drawn(draw))
    elif what == "drop" and len(copy) > 1:
        del copy[at]
    elif what == "move":
        copy.insert(draw.randrange(len(copy)), copy.pop(at))
    else:
        field = draw.choice(["count", "width", "length", "names"])
        value = getattr(copy[at], field)
        change = draw.choice([value * 2, value // 2, value + 1, getattr(drawn(draw), field)])
        copy[at] = replace(copy[at], **{field: max(1, min(change, 10_000))})
    return copy
