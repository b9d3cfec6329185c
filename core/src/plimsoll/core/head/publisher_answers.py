"""What a head answers publishers at the end of a round: acceptance, its exceptions, and credit.

Acceptance is cumulative: `ACCEPTED through` answers all numbers up to one, except those refused singly. With
`confirm: edges` an answer waits until every edge that needs the publication has it, at most `confirm_seconds`; then it
names the edges that do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from plimsoll.core.head.client_credit import ClientCredits
from plimsoll.core.head.open_publisher import OpenPublisher, PendingConfirmation
from plimsoll.core.protocol.messages import Accepted, Credit, Refused, Unconfirmed
from plimsoll.core.transport.link import NEVER, Link


class PublisherAnswers:
    """The answers to the publishers `by_name` of a head; each has at most `window` that are remembered."""

    def __init__(self, by_name: Mapping[str, OpenPublisher], clients: ClientCredits, window: int) -> None:
        self._by_name, self._credits, self._window = by_name, clients, window
        self._touched: dict[str, OpenPublisher] = {}
        self._raised: dict[OpenPublisher, None] = {}

    def opened(self, publisher: OpenPublisher, now: float) -> None:
        """It is open from now on; OPENED says what credit it has."""
        self.touch(publisher.name)
        self._credits.ask(publisher, now)
        self._raised |= dict.fromkeys(self._credits.give(now))
        self._raised.pop(publisher, None)

    def touch(self, *names: str) -> None:
        """Look at these publishers again at the end of the round."""
        for name in names:
            if (publisher := self._by_name.get(name)) is not None:
                self._touched[name] = publisher

    def await_edges(self, publisher: OpenPublisher, seq: int) -> PendingConfirmation:
        """Let the answer to this publication, and to those after it, wait."""
        pending = PendingConfirmation(seq)
        publisher.pending.append(pending)
        self.touch(publisher.name)
        return pending

    def single_out(self, publisher: OpenPublisher, answer: Refused | Unconfirmed) -> None:
        """Remember an exception to cumulative acceptance; a client has at most a window of unanswered publications."""
        publisher.singled_out.append(answer)
        if len(publisher.singled_out) > self._window:
            publisher.singled_out.popleft()

    def again(self, name: str, handle: int) -> Iterator[Refused | Unconfirmed]:
        """The single answers that a publisher must have before the cumulative one, whose exceptions they are."""
        for answer in self._by_name[name].singled_out:
            yield msgspec.structs.replace(answer, handle=handle)

    def due(self, now: float) -> Iterator[tuple[Link, Accepted | Credit | Unconfirmed]]:
        """The answers that are due at the end of this round."""
        touched, self._touched = self._touched, {}
        for publisher in touched.values():
            if publisher.link is not None:
                yield from self._answer(publisher, publisher.link)
                self._credits.ask(publisher, now)
        if given := self._credits.give(now):
            self._raised |= dict.fromkeys(given)
        raised, self._raised = self._raised, {}
        for publisher in raised:
            if publisher.link is not None:
                yield publisher.link, Credit(publisher.handle, publisher.through)

    def _answer(self, publisher: OpenPublisher, link: Link) -> Iterator[tuple[Link, Accepted | Unconfirmed]]:
        while publisher.pending and not publisher.pending[0].missing:
            first = publisher.pending.popleft()
            if first.late:
                unconfirmed = Unconfirmed(publisher.handle, first.seq, first.late)
                self.single_out(publisher, unconfirmed)
                yield link, unconfirmed
        through = publisher.pending[0].seq - 1 if publisher.pending else publisher.last_seq
        if through > publisher.answered:
            publisher.answered = through
            yield link, Accepted(publisher.handle, through)

    def wake_at(self, now: float) -> float:
        """When a publisher that waits may be given credit again, if nothing comes before; infinity if none waits."""
        at = self._credits.wake_at()
        return max(at, now + 0.001) if at != NEVER else at
