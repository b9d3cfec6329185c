"""The four mixes of subscriptions and publications, each drawn from a seed.

paper      the six templates of Cheung and Jacobsen 2006, 6.1, over quotes; the broad ones make matches grow with N
selective  only the three templates with a symbol and a range: few matches
general    20 attributes (10 strings of 50 values each, Zipf; 10 numbers), 2-5 predicates of which 1-3 are equalities
hostile    no equality at all: 1-3 overlapping ranges over 10 numbers, each 20-60 % wide

With bokeh_sampledata installed the quotes are real: every symbol is a stretch of consecutive trading days of one of
its five series. Otherwise they are drawn at random, and the report says so.
"""

import csv
import gzip
import random
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec

from plimsoll.core.predicates import Predicate, Subscription, conjunction

Attributes = dict[str, str | int | float | bool]
Triples = list[tuple[str, str, object]]
STRINGS = tuple(f"s{i}" for i in range(10))
NUMBERS = tuple(f"f{i}" for i in range(10))
ZIPF = tuple(1 / rank for rank in range(1, 51))
MIXES = ("paper", "selective", "general", "hostile")


@dataclass(frozen=True)
class Workload:
    mix: str
    quotes: str  # "real", "drawn" or "none"
    triples: list[Triples]  # each subscription as (attribute, operator, value): the input of the baseline engines
    publications: list[Attributes]

    def subscriptions(self) -> list[Subscription]:
        return [conjunction(Predicate(*triple) for triple in triples) for triples in self.triples]  # type: ignore[arg-type]  # operators are written as text


def workload(mix: str, size: int, seed: int = 1, publications: int = 1000) -> Workload:
    """`size` subscriptions of a mix, and publications to match against them."""
    seeded = random.Random(f"{seed} {mix} {size}")
    if mix in ("paper", "selective"):
        symbols = 100 if size <= 10_000 else 1000
        rows, source = _real_quotes(), "real"
        if not rows:
            rows, source = _drawn_quotes(seeded), "drawn"
        stretch = len(rows) // symbols
        quotes = {f"SYM{i:05d}": rows[i * stretch : (i + 1) * stretch] for i in range(symbols)}
        names = list(quotes)
        template = _paper if mix == "paper" else _selective
        triples = [template(seeded, name := seeded.choice(names), seeded.choice(quotes[name])) for _ in range(size)]
        published = [
            {"class": "STOCK", "symbol": (name := seeded.choice(names)), **seeded.choice(quotes[name])}
            for _ in range(publications)
        ]
        return Workload(mix, source, triples, published)
    maker = _general if mix == "general" else _hostile
    published = [
        {name: _word(seeded) for name in STRINGS} | {name: seeded.random() for name in NUMBERS}
        for _ in range(publications)
    ]
    return Workload(mix, "none", [maker(seeded) for _ in range(size)], published)


def _paper(seeded: random.Random, name: str, quote: Attributes) -> Triples:
    stock, symbol = ("class", "=", "STOCK"), ("symbol", "=", name)
    at = seeded.random()
    if at < 0.20:
        return [stock, symbol, ("high", ">", quote["high"])]
    if at < 0.40:
        return [stock, symbol, ("low", "<", quote["low"])]
    if at < 0.60:
        return [stock, symbol, ("volume", ">", quote["volume"])]
    if at < 0.94:
        return [stock, symbol]
    return [stock, ("volume", ">", quote["volume"])] if at < 0.99 else [stock]


def _selective(seeded: random.Random, name: str, quote: Attributes) -> Triples:
    bound = seeded.choice((("high", ">"), ("low", "<"), ("volume", ">")))
    return [("class", "=", "STOCK"), ("symbol", "=", name), (*bound, quote[bound[0]])]


def _word(seeded: random.Random) -> str:
    return f"v{seeded.choices(range(50), ZIPF)[0]}"


def _general(seeded: random.Random) -> Triples:
    count = seeded.randint(2, 5)
    equalities = seeded.randint(1, min(3, count))
    triples: Triples = [(name, "=", _word(seeded)) for name in seeded.sample(STRINGS, equalities)]
    for name in seeded.sample(NUMBERS, count - equalities):
        triples.append((name, seeded.choice("<>"), seeded.random()))
    return triples


def _hostile(seeded: random.Random) -> Triples:
    triples: Triples = []
    for name in seeded.sample(NUMBERS, seeded.randint(1, 3)):
        width = seeded.uniform(0.2, 0.6)
        low = seeded.uniform(0.0, 1.0 - width)
        triples += [(name, ">", low), (name, "<", low + width)]
    return triples


def _real_quotes() -> list[Attributes]:
    if find_spec("bokeh_sampledata") is None:
        return []
    file = resources.files("bokeh_sampledata") / "_data" / "stocks.csv.gz"
    with file.open("rb") as packed, gzip.open(packed, "rt", newline="") as text:
        return [_quote(row) for row in csv.DictReader(text)]


def _quote(row: dict[str, str]) -> Attributes:
    prices: Attributes = {name.lower(): float(row[name]) for name in ("Open", "High", "Low", "Close")}
    return prices | {"volume": int(row["Volume"]), "date": row["Date"]}


def _drawn_quotes(seeded: random.Random) -> list[Attributes]:
    rows: list[Attributes] = []
    for _ in range(1000):
        price, volume = seeded.uniform(10, 100), 10 ** seeded.uniform(4, 7)
        for day in range(12):
            first, last = price * seeded.uniform(0.9, 1.1), price * seeded.uniform(0.9, 1.1)
            rows.append(
                {
                    "open": round(first, 2),
                    "high": round(max(first, last) * 1.02, 2),
                    "low": round(min(first, last) * 0.98, 2),
                    "close": round(last, 2),
                    "volume": int(volume * seeded.uniform(0.5, 1.5)),
                    "date": f"2000-01-{day + 1:02d}",
                }
            )
    return rows
