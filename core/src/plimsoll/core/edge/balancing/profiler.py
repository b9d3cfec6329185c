"""Answers to PROFILE_QUERY: the share of the traffic that each subscriber takes, computed in slices beside the stream.

Only the latest query is answered. Its answer is kept for a while: pieces travel on the control socket, where they may
be lost, and are asked for again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from plimsoll.core import predicates
from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.attachment import SERVED, SILENT, EdgeAttachment
from plimsoll.core.edge.subscription_table import SubscriptionTable
from plimsoll.core.matching import Index
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile, profile_rows
from plimsoll.core.predicates import Attributes
from plimsoll.core.profiling.press import PressEstimator
from plimsoll.core.profiling.profile_codec import PARTS_AT_MOST, PROFILE_BYTES, encode_profile, split_reply
from plimsoll.core.profiling.ring import RingEstimator
from plimsoll.core.profiling.sampler import bounded_profile
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES

KEPT_SECONDS = 60.0
KEY_CHARACTERS = 256
EACH = "\0"
"""Begins the keys of rows that stand for one subscription; no list of subscriptions begins with it."""
SAMPLES_AT_ONCE = 64
TEXTS_AT_ONCE = 128
ATTACHMENTS_AT_ONCE = 256
"""Work of one round: a few milliseconds, so that the stream does not wait for a profile."""


class AttachmentsByName(Protocol):
    @property
    def by_subscriber(self) -> Mapping[str, EdgeAttachment]: ...


class ProfilerContext(Protocol):
    """What the profiler needs of its edge."""

    epoch: int
    config: BrokerConfig
    counters: Counter[str]
    subscription_table: SubscriptionTable

    @property
    def attachments(self) -> AttachmentsByName: ...
    @property
    def now(self) -> float: ...
    def to_head(self, message: msg.ControlRecord, /) -> None: ...


class Profiler:
    """`begin` returns the estimator: a ring with samples already, or PRESS, which takes them from now on."""

    def __init__(self, host: ProfilerContext, begin: Callable[[], RingEstimator | PressEstimator]) -> None:
        self.host, self._begin = host, begin
        self._press: PressEstimator | None = None
        self._id = 0
        self._parts: dict[int, list[tuple[str, str]]] = {}
        self._work: Iterator[None] | None = None
        self._answer: list[msg.ProfileReply] = []
        self._answered_at = 0.0

    def note(self, publisher: str, attributes: Attributes, size_bytes: int, now: float) -> None:
        """Hot path: sample a publication, if PRESS is taking samples for a query."""
        if self._press is not None:
            self._press.note(publisher, attributes, size_bytes, now)

    def wake_at(self) -> float:
        """When `advance` is wanted next."""
        if self._work is None:
            return float("inf")
        return self.host.now if self._press is None else self._press.ends_at()

    def on_query(self, query: msg.ProfileQuery) -> None:
        """Take a part of a query; a repeated first part asks for the finished answer again."""
        most = PARTS_AT_MOST + len(query.targets)  # every target has at least one part
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
                self._press = samples if isinstance(samples, PressEstimator) else None
                self._work = self._profiled(query, texts, samples)

    def advance(self) -> None:
        """Do one round of work, if there is any, and drop an answer that has been kept long enough."""
        if self._press is not None and not self._press.is_complete(self.host.now):
            return
        if self._work is not None and next(self._work, self) is self:
            self._work = self._press = None
        if self._answer and self.host.now > self._answered_at + KEPT_SECONDS:
            self._answer = []

    def _profiled(
        self, query: msg.ProfileQuery, texts: list[tuple[str, str]], samples: RingEstimator | PressEstimator
    ) -> Iterator[None]:
        accepting: Index = Index(compiled=self.host.config.hardware.may_compile)
        for number, (_, text) in enumerate(texts):
            try:
                accepting.add(number, predicates.parse(text))
            except ValueError:
                self.host.counters["profile_queries_refused"] += 1
                return
            if number % TEXTS_AT_ONCE == 0:
                yield
        keys: dict[EdgeAttachment, str] = {}
        each: dict[int, str] = {}
        lists: dict[str, tuple[str, ...]] = {}
        for number, attachment in enumerate(list(self.host.attachments.by_subscriber.values())):
            if attachment.state in SERVED and attachment.is_installed:
                keys[attachment] = key_of(attachment)
                if query.each:
                    own = {number: shortened(str(one)) for one, number in attachment.subscriptions.values()}
                    lists[keys[attachment]] = tuple(sorted(set(own.values())))
                    each |= own
            if number % ATTACHMENTS_AT_ONCE == 0:
                yield
        sampling = samples.sampling(
            [*_rows(keys), *_rows_of_each(each)], lambda attributes: self._matching(keys, each, attributes),
            lambda attributes: not query.targets and bool(accepting.match(attributes)), self.host.now, PROFILE_BYTES,
            lambda attributes: {texts[number][0] for number in accepting.match(attributes)} if query.targets else (),
        )  # fmt: skip
        while not sampling.advance(SAMPLES_AT_ONCE):
            yield
        profile = bounded_profile(sampling.profile(float(PREFIX_BYTES)), PROFILE_BYTES)
        data = encode_profile(_with_each(profile, lists) if query.each else profile)
        self._answer, self._answered_at = split_reply(query, self.host.epoch, data), self.host.now
        for piece in self._answer:
            self.host.to_head(piece)

    def _matching(
        self, keys: Mapping[EdgeAttachment, str], each: Mapping[int, str], attributes: Attributes
    ) -> Iterable[str]:
        holders, matched = self.host.subscription_table.holders, self.host.subscription_table.index.match(attributes)
        # What another edge still delivers is no traffic of a subscriber here, and does not stay here either.
        numbers = [number for number in matched if holders[number].state not in SILENT]
        found = {keys.get(holders[number], "") for number in numbers}
        return found | {EACH + each[number] for number in numbers if number in each} if each else found


def _rows(keys: Mapping[EdgeAttachment, str]) -> tuple[ProfileRow, ...]:
    return profile_rows((a.subscriber, key, 0, len(a.subscriptions)) for a, key in keys.items())


def _rows_of_each(each: Mapping[int, str]) -> list[ProfileRow]:
    """A row without subscribers for each distinct subscription, so that it is matched and bounded like the others."""
    return [ProfileRow(EACH + text, 0, ()) for text in sorted(set(each.values()))]


def _with_each(profile: SubscriptionProfile, lists: Mapping[str, tuple[str, ...]]) -> SubscriptionProfile:
    """The profile with the rows of subscriptions apart from those of subscribers."""
    found = {row.key.removeprefix(EACH): row.bits for row in profile.rows if row.key.startswith(EACH)}
    rows = [replace(row, texts=lists[row.key]) for row in profile.rows if not row.key.startswith(EACH)]
    return replace(profile, rows=tuple(rows), each=tuple(sorted(found.items())))


def key_of(attachment: EdgeAttachment) -> str:
    """A subscriber's list as text: equal lists have equal keys, and share a row."""
    return shortened(", ".join(sorted(f"{{{one}}}" for one, _ in attachment.subscriptions.values())))


def shortened(text: str) -> str:
    """A text; a long one is cut, with a digest, so that equal ones stay equal and others differ."""
    if len(text) <= KEY_CHARACTERS:
        return text
    return f"{text[:KEY_CHARACTERS]}... {hashlib.sha256(text.encode()).hexdigest()[:16]}"
