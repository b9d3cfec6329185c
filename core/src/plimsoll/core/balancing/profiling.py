"""An edge's answers to PROFILE_QUERY: what its subscribers take, found a little at a time beside the stream.

One query at a time, the latest; its answer is kept for a while, as pieces of it may be lost and are wanted again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from plimsoll.core import predicates
from plimsoll.core import records as r
from plimsoll.core.attachment import HANDLE_BYTES, SERVED, Attachment
from plimsoll.core.balancing.pieces import PARTS_AT_MOST, PROFILE_BYTES, encoded, pieces
from plimsoll.core.config import BrokerConfig
from plimsoll.core.matching import Index
from plimsoll.core.policies.press import Press
from plimsoll.core.policies.profile import Row, rows_of
from plimsoll.core.policies.ring import Ring
from plimsoll.core.policies.sampling import bounded
from plimsoll.core.predicates import Attributes

KEPT_SECONDS = 60.0
KEY_CHARACTERS = 256
SAMPLES_AT_ONCE = 64
TEXTS_AT_ONCE = 128
ATTACHMENTS_AT_ONCE = 256
"""So much is done in one round, a few milliseconds, before the stream is served again."""


class Host(Protocol):
    """What profiling needs of its edge."""

    epoch: int
    config: BrokerConfig
    counters: Counter[str]
    index: Index
    holders: dict[int, Attachment]
    records: dict[str, Attachment]

    @property
    def now(self) -> float: ...
    def to_head(self, record: Any) -> None: ...


class Profiling:
    """`begin` gives what has looked at publications, or looks at them from now on."""

    def __init__(self, host: Host, begin: Callable[[], Ring | Press]) -> None:
        self.host, self._begin = host, begin
        self._press: Press | None = None
        self._id = 0
        self._parts: dict[int, list[tuple[str, str]]] = {}
        self._work: Iterator[None] | None = None
        self._answer: list[r.ProfileReply] = []
        self._answered_at = 0.0

    def note(self, publisher: str, attributes: Attributes, size_bytes: int, now: float) -> None:
        """Hot path, where publications are looked at only while somebody waits."""
        if self._press is not None:
            self._press.note(publisher, attributes, size_bytes, now)

    def wake_at(self) -> float:
        """When a round more is wanted."""
        if self._work is None:
            return float("inf")
        return self.host.now if self._press is None else self._press.ends_at()

    def on_query(self, query: r.ProfileQuery) -> None:
        """A part of a query, for the first time or again."""
        most = PARTS_AT_MOST + len(query.targets)  # each target has a part at least
        if query.id < self._id or not 0 < query.parts <= most or query.part >= query.parts:
            return
        if query.id > self._id:
            self._id, self._parts, self._work, self._press, self._answer = query.id, {}, None, None, []
        if self._answer:
            if query.part == 0:
                for piece in self._answer:
                    self.host.to_head(piece)
        elif self._work is None:
            self._parts[query.part] = [(query.target, text) for text in query.accepting]
            if len(self._parts) == query.parts:
                texts = [each for part in sorted(self._parts) for each in self._parts[part]]
                self._parts = {}
                samples = self._begin()
                self._press = samples if isinstance(samples, Press) else None
                self._work = self._profiled(query, texts, samples)

    def advance(self) -> None:
        """A round of work, if there is any; what has been kept for long goes."""
        if self._press is not None and not self._press.is_complete(self.host.now):
            return
        if self._work is not None and next(self._work, self) is self:
            self._work = self._press = None
        if self._answer and self.host.now > self._answered_at + KEPT_SECONDS:
            self._answer = []

    def _profiled(self, query: r.ProfileQuery, texts: list[tuple[str, str]], samples: Ring | Press) -> Iterator[None]:
        accepting: Index = Index(compiled=self.host.config.hardware.may_compile)
        for number, (_, text) in enumerate(texts):
            try:
                accepting.add(number, predicates.parse(text))
            except ValueError:
                self.host.counters["profile_queries_refused"] += 1
                return
            if number % TEXTS_AT_ONCE == 0:
                yield
        keys: dict[Attachment, str] = {}
        for number, attachment in enumerate(list(self.host.records.values())):
            if attachment.state in SERVED and attachment.is_installed:
                keys[attachment] = key_of(attachment)
            if number % ATTACHMENTS_AT_ONCE == 0:
                yield
        sampling = samples.sampling(
            _rows(keys), lambda attributes: self._matching(keys, attributes),
            lambda attributes: not query.targets and bool(accepting.match(attributes)), self.host.now, PROFILE_BYTES,
            lambda attributes: {texts[number][0] for number in accepting.match(attributes)} if query.targets else (),
        )  # fmt: skip
        while not sampling.advance(SAMPLES_AT_ONCE):
            yield
        data = encoded(bounded(sampling.profile(float(HANDLE_BYTES)), PROFILE_BYTES))
        self._answer, self._answered_at = pieces(query, self.host.epoch, data), self.host.now
        for piece in self._answer:
            self.host.to_head(piece)

    def _matching(self, keys: Mapping[Attachment, str], attributes: Any) -> Iterable[str]:
        holders = self.host.holders
        return {keys.get(holders[number], "") for number in self.host.index.match(attributes)}


def _rows(keys: Mapping[Attachment, str]) -> tuple[Row, ...]:
    return rows_of((a.subscriber, key, 0, len(a.subscriptions)) for a, key in keys.items())


def key_of(attachment: Attachment) -> str:
    """What a subscriber asks for, written: the same for all who ask for the same. A long one is cut short."""
    text = ", ".join(sorted(f"{{{subscription}}}" for subscription, _ in attachment.subscriptions.values()))
    if len(text) <= KEY_CHARACTERS:
        return text
    return f"{text[:KEY_CHARACTERS]}... {hashlib.sha256(text.encode()).hexdigest()[:16]}"
