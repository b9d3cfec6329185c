"""The setting of PADRES 2006, 6.2, in virtual time: publishers with their rates, subscribers, and the true rates.

40 publishers of quotes at a mean rate between 0 and 60 a minute; 2,000 subscribers by the paper's templates, a quarter
of which ask for symbols that no publisher has. Each publication is drawn from its publisher's quotes. So the true rates
are known, only a step of rates changes them, and every estimate can be compared with them.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bench.matching.workloads import Triples, workload

from plimsoll.core.matching import Index
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic, union_bits
from plimsoll.core.predicates import Predicate, Subscription, conjunction
from plimsoll.core.predicates.subscription import Attributes

PUBLISHERS, SUBSCRIBERS, SILENT, BROAD = 40, 2000, 500, 90
Arrival = tuple[float, str, Attributes]


def parsed(triples: Triples) -> Subscription:
    return conjunction(Predicate(*part) for part in triples)  # type: ignore[arg-type]  # operators are written as text


@dataclass(frozen=True)
class QuotePublisher:
    name: str
    rate: float
    quotes: tuple[Attributes, ...]


class World:
    """One drawn setting."""

    def __init__(self, seed: int) -> None:
        seeded = random.Random(f"{seed} world")
        mix = workload("paper", 10_000, seed, publications=20_000)
        self.quotes = mix.quotes
        names = [f"SYM{i:05d}" for i in range(PUBLISHERS)]
        pools = {name: tuple(p for p in mix.publications if p["symbol"] == name) for name in names}
        self.publishers = tuple(QuotePublisher(name, seeded.uniform(0.0, 1.0), pools[name]) for name in names)
        ours = {("symbol", "=", name) for name in names}
        broad = [triples for triples in mix.triples if not any(part[0] == "symbol" for part in triples)]
        narrow = [triples for triples in mix.triples if ours & set(triples)]
        loud = SUBSCRIBERS - SILENT - BROAD
        asked = broad[:BROAD] + narrow[:loud]
        asked += [[("class", "=", "STOCK"), ("symbol", "=", f"NONE{i:03d}")] for i in range(SILENT)]
        self.triples = asked
        self.others = broad[BROAD : 2 * BROAD] + narrow[loud : 2 * loud] + asked[-SILENT:]
        self.subscriptions = [parsed(triples) for triples in asked]
        self.rows = tuple(ProfileRow(str(i), 0, (f"s{i}",)) for i in range(len(asked)))
        index = Index(compiled=False)
        index.load(enumerate(self.subscriptions))
        self._matches = {id(q): tuple(map(str, index.match(q))) for p in self.publishers for q in p.quotes}
        self.bits = self._bits()
        self.loud = [key for key, bits in self.bits.items() if bits]

    def matching(self, attributes: Attributes) -> tuple[str, ...]:
        return self._matches[id(attributes)]

    def _bits(self) -> dict[str, int]:
        bits = {row.key: 0 for row in self.rows}
        for at, quote in enumerate(quote for publisher in self.publishers for quote in publisher.quotes):
            for key in self._matches[id(quote)]:
                bits[key] |= 1 << at
        return bits

    def doubled(self, seeded: random.Random) -> "World":
        """The same with half of the publishers at twice their rate. PADRES 2006, 6.2."""
        chosen = set(seeded.sample(range(PUBLISHERS), PUBLISHERS // 2))
        changed = World.__new__(World)
        changed.__dict__.update(self.__dict__)
        changed.publishers = tuple(
            replace(publisher, rate=publisher.rate * (2 if i in chosen else 1))
            for i, publisher in enumerate(self.publishers)
        )
        return changed

    @property
    def rate(self) -> float:
        return sum(publisher.rate for publisher in self.publishers)

    def arrivals(self, begin: float, end: float, seeded: random.Random, by_clock: bool = False) -> list[Arrival]:
        """The publications of this time, in order: Poisson arrivals, or equal intervals for each publisher."""
        found: list[Arrival] = []
        for publisher in self.publishers:
            now = begin - seeded.random() / publisher.rate if by_clock else begin
            while (now := now + (1.0 / publisher.rate if by_clock else seeded.expovariate(publisher.rate))) < end:
                found.append((now, publisher.name, seeded.choice(publisher.quotes)))
        return sorted(found, key=lambda arrival: arrival[0])

    def true_profile(self) -> SubscriptionProfile:
        """The profile without sampling: every quote at its share of its publisher's rate."""
        blocks = [SampleBlock(len(p.quotes), p.rate / len(p.quotes)) for p in self.publishers]
        return SubscriptionProfile(
            SampledTraffic(blocks), tuple(replace(row, bits=self.bits[row.key]) for row in self.rows)
        )


@dataclass(frozen=True)
class Error:
    """Relative errors for a set of subscribers: `output` of the sum of their rates, `input` of their union's rate."""

    output: float
    input: float


def errors(actual: SubscriptionProfile, estimated: SubscriptionProfile, sets: Iterable[Sequence[str]]) -> list[Error]:
    """Signed errors: below 0 the estimate is too low. Sets that match nothing are left out."""
    are, seem = ({row.key: row.bits for row in profile.rows} for profile in (actual, estimated))
    found = []
    for keys in sets:
        outputs = [
            sum(profile.traffic.rate(bits[key]) for key in keys) for profile, bits in ((actual, are), (estimated, seem))
        ]
        inputs = [
            profile.traffic.rate(union_bits(bits[key] for key in keys))
            for profile, bits in ((actual, are), (estimated, seem))
        ]
        if outputs[0] > 0.0:
            found.append(Error(outputs[1] / outputs[0] - 1.0, inputs[1] / inputs[0] - 1.0))
    return found
