"""Pages of what an edge's subscribers ask for, for a mediator that wants to know.

A page is bounded in subscribers and in bytes, so that the stream does not wait for it. A long list goes over several
pages.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from plimsoll.core.edge.attachment import SERVED, EdgeAttachment
from plimsoll.core.protocol import messages as msg

SUBSCRIBERS_PER_PAGE = 256
PAGE_BYTES = 256 * 1024
"""Of subscriptions; a page has at least one, however long."""


def subscription_page(
    request: msg.ListSubscriptions, epoch: int, by_subscriber: Mapping[str, EdgeAttachment]
) -> msg.SubscriptionPage:
    """The lists of the subscribers that are served here, from the one that the request names on."""
    served = (name for name, each in by_subscriber.items() if name >= request.start and each.state in SERVED)
    names = heapq.nsmallest(SUBSCRIBERS_PER_PAGE + 1, served)
    found: list[msg.SubscriptionListItem] = []
    size = 0
    for name in names[:SUBSCRIBERS_PER_PAGE]:
        skip = request.skip if name == request.start else 0
        texts: list[str] = []
        link = by_subscriber[name].link.id
        for text in _texts(by_subscriber[name])[skip:]:
            if size and size + len(text.encode()) > PAGE_BYTES:
                found += [msg.SubscriptionListItem(name, texts, link)] if texts else []
                return msg.SubscriptionPage(request.id, epoch, found, name, skip + len(texts))
            size += len(text.encode())
            texts.append(text)
        found.append(msg.SubscriptionListItem(name, texts, link))
    after = names[SUBSCRIBERS_PER_PAGE] if len(names) > SUBSCRIBERS_PER_PAGE else ""
    return msg.SubscriptionPage(request.id, epoch, found, after)


def _texts(attachment: EdgeAttachment) -> list[str]:
    return sorted(str(one) for one, _ in attachment.subscriptions.values())
