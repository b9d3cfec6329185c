"""Answers to PROFILE_QUERY: the share of the traffic that each subscriber takes, computed in slices beside the stream.

Only the latest query is answered. Its answer is kept for a while: pieces travel on the control socket, where they may
be lost, and are asked for again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from plimsoll.core import predicates
from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.attachment import SERVED, EdgeAttachment
from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.subscription_table import SubscriptionTable
from plimsoll.core.matching import Index
from plimsoll.core.policies.model.profile import ProfileRow, profile_rows
from plimsoll.core.predicates import Attributes
from plimsoll.core.profiling.press import PressEstimator
from plimsoll.core.profiling.profile_codec import PARTS_AT_MOST, PROFILE_BYTES, encode_profile, split_reply
from plimsoll.core.profiling.ring import RingEstimator
from plimsoll.core.profiling.sampler import bounded_profile
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES

KEPT_SECONDS = 60.0
KEY_CHARACTERS = 256
SAMPLES_AT_ONCE = 64
TEXTS_AT_ONCE = 128
ATTACHMENTS_AT_ONCE = 256
"""Work of one round: a few milliseconds, so that the stream does not wait for a profile."""


class ProfilerContext(Protocol):
    """What the profiler needs of its edge."""

    epoch: int
    config: BrokerConfig
    counters: Counter[str]
    attachments: AttachmentTable
    subscription_table: SubscriptionTable

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
        for number, attachment in enumerate(list(self.host.attachments.by_subscriber.values())):
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
        data = encode_profile(bounded_profile(sampling.profile(float(PREFIX_BYTES)), PROFILE_BYTES))
        self._answer, self._answered_at = split_reply(query, self.host.epoch, data), self.host.now
        for piece in self._answer:
            self.host.to_head(piece)

    def _matching(self, keys: Mapping[EdgeAttachment, str], attributes: Attributes) -> Iterable[str]:
        holders = self.host.subscription_table.holders
        return {keys.get(holders[number], "") for number in self.host.subscription_table.index.match(attributes)}


def _rows(keys: Mapping[EdgeAttachment, str]) -> tuple[ProfileRow, ...]:
    return profile_rows((a.subscriber, key, 0, len(a.subscriptions)) for a, key in keys.items())


def key_of(attachment: EdgeAttachment) -> str:
    """A subscriber's list as text: equal lists have equal keys, and share a row. A long one is cut, with a digest."""
    text = ", ".join(sorted(f"{{{subscription}}}" for subscription, _ in attachment.subscriptions.values()))
    if len(text) <= KEY_CHARACTERS:
        return text
    return f"{text[:KEY_CHARACTERS]}... {hashlib.sha256(text.encode()).hexdigest()[:16]}"
