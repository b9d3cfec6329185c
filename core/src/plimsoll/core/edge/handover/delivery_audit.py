"""The edge's part in a delivery audit: it asks the head what was due to a subscriber, and the subscriber what it got.

Rules:
- What is due is judged by the list that this edge holds; the subscriber answers only if its list is still the same.
- The query travels in the stream, behind everything that it is about: not while the subscriber is behind.
- Nothing waits for an audit, and nothing is repeated: an answer that is lost leaves the verdict unknown.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.attachments import AttachmentTable, EdgeContext
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Token
from plimsoll.core.transport.link import Link

SUBSCRIPTIONS_AT_MOST = 64
CHARACTERS_AT_MOST = 8 * 1024
"""A subscriber with a longer list is not audited."""

CHECKS_AT_ONCE = 32
"""Members that one DONE or AUDIT_QUERY asks about, so that it fits into a frame."""

REMEMBERED_AT_MOST = 8192
"""At most this many questions wait to be asked, and as many for an answer: a client that cannot count never answers."""


AuditKey = tuple[EdgeAttachment, str]
"""An attachment, and the session in which its subscriber counts: it may count in several, of publishers that move."""


@dataclass(slots=True)
class ExpectedAtJudge:
    """What was due to an attachment by the log of the head `judge`, and of others."""

    judge: str
    due: list[msg.ExpectedCount]

    def summary(self, subscriber: str, counted: msg.AuditReplyItem) -> msg.AuditSummaryItem:
        of_judge = sum(count for head, _, _, count in self.due if head == self.judge)
        of_others = sum(count for head, _, _, count in self.due if head != self.judge)
        return msg.AuditSummaryItem(
            subscriber, counted.lost, counted.duplicated, counted.reordered, counted.suppressed, of_judge, of_others
        )


def audit_request(attachment: EdgeAttachment, since: Token, marks: list[Token]) -> msg.AuditRequestItem | None:
    """Ask what was due to this list from there on; None if the list or the watermarks are too many to be sent."""
    texts = [str(subscription) for subscription, _ in attachment.subscriptions.values()]
    fits = len(texts) <= SUBSCRIPTIONS_AT_MOST and sum(map(len, texts)) <= CHARACTERS_AT_MOST
    if not fits or len(marks) > msg.COUNTED_MARKS_AT_MOST:
        return None
    return msg.AuditRequestItem(attachment.subscriber, attachment.epoch, since, marks, texts)


class DeliveryAuditRelay:
    """Audits in progress. `requests`: by session and subscriber, to go to the head with DONE."""

    def __init__(self, host: EdgeContext, attachments: AttachmentTable) -> None:
        self.host, self.attachments = host, attachments
        self.requests: dict[str, dict[str, msg.AuditRequestItem]] = {}
        self._expected: OrderedDict[AuditKey, ExpectedAtJudge] = OrderedDict()
        self._asked: OrderedDict[AuditKey, ExpectedAtJudge] = OrderedDict()
        self._summaries: defaultdict[tuple[str, str], list[msg.AuditSummaryItem]] = defaultdict(list)

    # -- towards the head

    def request(self, attachment: EdgeAttachment, session: str) -> None:
        """Ask what was due to a subscriber that has moved here, if it has counted its deliveries.

        A head knows no rights: of a subscription that gets no results of channels it cannot say what is due.
        """
        since, marks = attachment.counts_from or (None, [])
        closed = self.attachments.subscription_table.closed.numbers
        if any(number in closed for _, number in attachment.subscriptions.values()):
            since = None
        attachment.counts_from = None
        if since is not None and (request := audit_request(attachment, since, marks)) is not None:
            self.requests.setdefault(session, {})[attachment.subscriber] = request

    def collect(self) -> list[msg.AuditSummary]:
        """Return the answers that have come since the last call."""
        summaries = [msg.AuditSummary(session, judge, items) for (session, judge), items in self._summaries.items()]
        self._summaries.clear()
        return summaries

    # -- towards the subscriber

    def on_expected(self, expected: msg.ExpectedDeliveries) -> None:
        for item in expected.members:
            attachment = self.attachments.by_subscriber.get(item.subscriber)
            if attachment is not None and attachment.epoch == item.epoch:
                _remember(self._expected, (attachment, expected.session), ExpectedAtJudge(expected.judge, item.due))
        self.query()

    def query(self) -> None:
        """Ask the subscribers that keep up; the others once they have caught up."""
        asked: defaultdict[tuple[Link, str], list[msg.AuditQueryItem]] = defaultdict(list)
        for (attachment, session), expected in list(self._expected.items()):
            # With an empty queue the query goes behind the last publication that it is about.
            if attachment.state is AttachmentState.LIVE and not attachment.queue and attachment.dropped is None:
                _remember(self._asked, (attachment, session), expected)
                asked[attachment.link, session].append(msg.AuditQueryItem(attachment.id, expected.due))
            elif attachment.state is not AttachmentState.CLOSED:
                continue
            del self._expected[attachment, session]
        for (link, session), items in asked.items():
            for start in range(0, len(items), CHECKS_AT_ONCE):
                self.host.say(link, msg.AuditQuery(session, items[start : start + CHECKS_AT_ONCE]))
        for closed in [each for each in self._asked if each[0].state is AttachmentState.CLOSED]:
            del self._asked[closed]

    def on_reply(self, link: Link, reply: msg.AuditReply) -> None:
        for item in reply.members:
            attachment = self.attachments.attached(link, item.attachment)
            expected = self._asked.pop((attachment, reply.session), None) if attachment is not None else None
            if attachment is not None and expected is not None:
                key = (reply.session, expected.judge)
                self._summaries[key].append(expected.summary(attachment.subscriber, item))

    def restart(self) -> None:
        """Forget all audits: the head has restarted, and knows none of these sessions."""
        self.requests.clear()
        self._expected.clear()
        self._asked.clear()
        self._summaries.clear()


def _remember(questions: OrderedDict[AuditKey, ExpectedAtJudge], key: AuditKey, expected: ExpectedAtJudge) -> None:
    questions[key] = expected
    while len(questions) > REMEMBERED_AT_MOST:
        questions.popitem(last=False)
