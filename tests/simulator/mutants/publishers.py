"""Publishers that move between heads: docs/handover.md, 13."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.client.publisher import ClientPublisher
from plimsoll.core.client.publisher_moves import ClientPublisherMoves
from plimsoll.core.head.publish_requests import PublishRequests
from plimsoll.core.head.publisher_arrivals import PublisherArrivals
from plimsoll.core.head.publisher_commands import PublisherCommands
from plimsoll.core.head.publisher_moves import PublisherMoves
from plimsoll.core.head.publishers import PublisherTable

QUIET, KILLED, LINKS, ACROSS = (f"sessions-publishers{kind}" for kind in ("", "-restarts", "-links", "-across"))
REPLACED = "sessions-publishers-replaced"

MUTANTS = [
    Mutant(
        "go-waits-for-no-answer",
        "A publisher says GO once all that it has sent is answered.",
        (Change(ClientPublisherMoves.settled, " or publisher.buffer.sent", ""),),
        (QUIET, LINKS, ACROSS),
    ),
    Mutant(
        "standby-publishes",
        "A publisher that is on standby, or has said GO, sends nothing.",
        (Change(ClientPublisher.go_on, " or (self.move is not None and self.move.is_silent)", ""),),
        (QUIET, LINKS, ACROSS),
    ),
    Mutant(
        "marker-names-no-number",
        "MARKER names the last number of the publisher, and the other head takes the next.",
        (Change(PublisherMoves._cut, "publisher.last_seq, publisher.identity", "0, publisher.identity"),),
        (QUIET,),
    ),
    Mutant(
        "cut-before-the-edges-confirm",
        "A publisher is cut once each of its publications has its answer, also those that wait for edges.",
        (Change(PublisherMoves._cut, "publisher.pending or link is None", "link is None"),),
        (QUIET, LINKS, ACROSS),
    ),
    Mutant(
        "cut-without-a-marker",
        "The head that decides sends MARKER behind the last publication.",
        (Change(PublisherMoves._cut, "if not host.router.send(session.plan.head, marker):", "if False:"),),
        (QUIET,),
    ),
    Mutant(
        "late-go-is-obeyed",
        "The first decision holds: GO of a move that is off cuts no publisher.",
        (Change(PublisherMoves.on_go, " or publisher.moving != go.session", ""),),
        (LINKS, ACROSS, KILLED),
    ),
    Mutant(
        "stays-behind-the-cut",
        "After the cut a publisher can only arrive or return.",
        (Change(PublisherMoves._deadlines, "session.of(ASKED)", "session.of(ASKED, CUT)"),),
        (LINKS, KILLED, ACROSS),
    ),
    Mutant(
        "lost-link-decides-nothing",
        "Before the cut a lost link means that the publisher stays.",
        (
            Change(
                PublisherMoves.link_lost, 'self._decide(session, publisher.name, STAYED, "its link was lost")', "pass"
            ),
        ),
        (LINKS, KILLED),
    ),
    Mutant(
        "arrives-before-its-marker",
        "The other head opens a publisher only behind its MARKER.",
        (
            Change(
                PublisherArrivals.stand_by,
                "known is not None and known.arrived == opening.session and known.incarnation == opening.incarnation",
                "True",
            ),
        ),
        (QUIET, LINKS),
    ),
    Mutant(
        "older-move-opens-it",
        "A standby is opened by the MARKER of its own move only.",
        (Change(PublisherArrivals.on_marker, "standby.opening.session != marker.session", "False"),),
        (LINKS, KILLED, ACROSS),
    ),
    Mutant(
        "standby-outlives-the-way",
        "A standby ends if the way to the head that decides is lost.",
        (Change(PublisherArrivals.heads_lost, "if standby.opening.source in heads:", "if False:"),),
        (KILLED, ACROSS, LINKS),
    ),
    Mutant(
        "standby-outlives-its-link",
        "A standby ends with its link.",
        (Change(PublisherArrivals.client_lost, "if each.link is link", "if False"),),
        (LINKS, KILLED),
    ),
    Mutant(
        "holes-are-taken",
        "A head takes the next number of a publisher and no higher one.",
        (Change(PublishRequests.publish, "elif request.seq > publisher.last_seq + 1:", "elif False:"),),
        (LINKS, ACROSS),
    ),
    Mutant(
        "who-has-left-is-opened-again",
        "A head takes a publisher that has left only if it asks to return.",
        (Change(PublisherTable.open, "if not isinstance(opening, OpenReturning):", "if False:"),),
        (LINKS, KILLED),
    ),
    Mutant(
        "return-leaves-the-standby",
        "A publisher that returns tells the other head to forget it.",
        (Change(ClientPublisherMoves.end, "if move.handle and link is not None:", "if False:"),),
        (LINKS, ACROSS, KILLED),
    ),
    Mutant(
        "waits-for-ever",
        "A publisher that is opened nowhere asks its old head to take it again.",
        (Change(ClientPublisherMoves.tick, "self._client.now >= move.gives_up_at", "False"),),
        (KILLED, LINKS, ACROSS),
    ),
    Mutant(
        "returns-once",
        "It asks again on each new link until it is open.",
        (Change(ClientPublisher.open, "if self._returning:", "if self._returning and not self.handle:"),),
        (KILLED, LINKS),
    ),
    Mutant(
        "deposed-mediator-moves-publishers",
        "Commands about publishers are fenced by the epochs of mediators and heads.",
        (Change(PublisherCommands.on_command, "why = self.commands.refusal(command)", 'why = ""'),),
        (QUIET, KILLED),
    ),
    Mutant(
        "arrival-is-not-reported",
        "The head that takes a publisher tells the one that decides.",
        (Change(PublisherArrivals._open, "self.host.router.send(waiting[1], ", "str("),),
        (QUIET,),
    ),
]
