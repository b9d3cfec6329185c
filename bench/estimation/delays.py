"""Forecasts of the match delay when subscriptions leave or arrive: eq. 4 and the fitted line against measurement.

A broker here is an engine, and a record written for each match. Its delay is measured, forecast for a change, and
measured again after the change. Four changes separate the models: the subscribers without matches leave, half of all
leave, the tenth with most matches leaves, the number doubles. Times are processor time and vary from run to run;
everything else is seeded.
"""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from time import process_time
from typing import Any

from bench.estimation.worlds import World, parsed
from bench.matching.baselines import NaiveScan, Rete
from bench.matching.workloads import Triples

from plimsoll.core.matching import Index
from plimsoll.core.policies.model.match_delay import (
    LinearMatchDelay,
    MatchDelayFitter,
    MatchDelayModel,
    MatchLoadChange,
)
from plimsoll.core.predicates.subscription import Attributes

FRAME = 8
"""Publications measured together, as a broker takes them from one frame."""

PIECE = bytes(200)
Match = Callable[[Attributes], Sequence[int]]
Engine = Callable[[Sequence[Triples]], Match]


class MeasuredBroker:
    """An engine with some subscriptions, and the time that publications take in it."""

    def __init__(self, engine: Engine, asked: Sequence[Triples]) -> None:
        self.count, self.match, self.fit = len(asked), engine(asked), MatchDelayFitter()
        self.delays: list[float] = []
        self.matches: list[float] = []

    def serve(self, quotes: Sequence[Attributes]) -> None:
        for at in range(0, len(quotes), FRAME):
            frame, count = quotes[at : at + FRAME], 0
            begin = process_time()
            for attributes in frame:
                out: list[bytes] = []
                for i in self.match(attributes):
                    out.append(b"%06x" % i + PIECE)
                count += len(out)
            seconds = process_time() - begin
            self.fit.note(count, seconds, len(frame))
            self.delays.append(seconds / len(frame))
            self.matches.append(count / len(frame))

    @property
    def delay_seconds(self) -> float:
        """Mean time of a publication, without the slowest frames: those were interrupted."""
        kept = sorted(self.delays)[: len(self.delays) * 98 // 100]
        return statistics.mean(kept)


def index(asked: Sequence[Triples]) -> Match:
    found = Index(compiled=False)
    found.load(enumerate(map(parsed, asked)))
    return found.match


ENGINES: Mapping[str, tuple[Engine, int]] = {
    "index": (index, 24_000),
    "scan of all": (lambda asked: NaiveScan(asked).match, 1600),
    "discrimination network": (lambda asked: Rete(asked).match, 4000),
}
"""Each engine with the number of publications to measure it with."""

ROUNDS = 4


def changes(world: World, seeded: random.Random) -> dict[str, list[Triples]]:
    """The subscriptions that are left after each change."""
    ids = list(range(len(world.triples)))
    by_bits = sorted(ids, key=lambda i: world.bits[str(i)].bit_count())
    silent = sum(not bits for bits in world.bits.values())
    staying = {
        "those without matches leave": by_bits[silent:],
        "half of all leave": seeded.sample(ids, len(ids) // 2),
        "tenth with most matches leaves": by_bits[: len(ids) * 9 // 10],
    }
    found = {name: [world.triples[i] for i in sorted(chosen)] for name, chosen in staying.items()}
    return found | {"the number doubles": world.triples + world.others}


def measured(seed: int = 1) -> list[dict[str, Any]]:
    """A row for each engine and change: delay before and after, and both forecasts with their errors."""
    world, seeded = World(seed), random.Random(f"{seed} delays")
    publishers = world.publishers
    rows = []
    for name, (engine, count) in ENGINES.items():
        chosen = seeded.choices(publishers, [publisher.rate for publisher in publishers], k=count)
        quotes = [seeded.choice(publisher.quotes) for publisher in chosen]
        before = MeasuredBroker(engine, world.triples)
        brokers = {change: MeasuredBroker(engine, asked) for change, asked in changes(world, seeded).items()}
        for turn in range(ROUNDS):  # in turn, so that all of them meet the same machine
            for broker in (before, *brokers.values()):
                broker.serve(quotes[turn::ROUNDS])
        rows += [_row(name, change, before, after) for change, after in brokers.items()]
    return rows


def _row(engine: str, change: str, before: MeasuredBroker, after: MeasuredBroker) -> dict[str, Any]:
    matches = [statistics.mean(broker.matches) for broker in (before, after)]
    moved = MatchLoadChange(after.count - before.count, matches[1] - matches[0])
    models: dict[str, MatchDelayModel] = {
        "linear": LinearMatchDelay(before.count, before.delay_seconds),
        "fitted": before.fit.model(),
    }
    row: dict[str, Any] = {
        "engine": engine,
        "change": change,
        "subscriptions": [before.count, after.count],
        "matches": matches,
        "before_seconds": before.delay_seconds,
        "after_seconds": after.delay_seconds,
    }
    for name, model in models.items():
        row[name] = model.after(moved)
        row[f"{name}_error"] = model.after(moved) / after.delay_seconds - 1.0
    return row
