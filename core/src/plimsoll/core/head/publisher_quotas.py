"""Quotas of publishers: of an identity that has one, shared by all its publishers; else of each publisher."""

from __future__ import annotations

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.open_publisher import OpenPublisher, PublisherQuota
from plimsoll.core.permissions import ClientPermissions


class PublisherQuotas:
    """The quotas of a head's publishers. Those of identities change with what is granted."""

    def __init__(self, limits: BrokerLimits) -> None:
        self._limits = limits
        self._by_identity: dict[str, tuple[ClientPermissions, PublisherQuota]] = {}

    def own(self, now: float) -> PublisherQuota:
        """The quota of a new publisher."""
        limits = self._limits
        return PublisherQuota.of(limits.publisher_rate_per_second, limits.publisher_bytes_per_second, now)

    def share(self, publisher: OpenPublisher, grant: ClientPermissions, now: float) -> None:
        """Let a publisher draw on the quota of its identity where that has one, else on its own."""
        known = self._by_identity.get(grant.identity)
        if known is None or known[0] != grant:
            quota = PublisherQuota.of(grant.publications_per_second, grant.bytes_per_second, now)
            known = self._by_identity[grant.identity] = (grant, quota)
        shared, own = known[1], publisher.own or PublisherQuota(None, None)
        if publisher.shared is not shared:
            self.leave(publisher)
            publisher.shared = shared
            shared.sharers += 1
        publisher.messages, publisher.bytes = shared.messages or own.messages, shared.bytes or own.bytes

    def leave(self, publisher: OpenPublisher) -> None:
        """It no longer draws on the quota of its identity."""
        if publisher.shared is not None:
            publisher.shared.sharers -= 1
            publisher.shared = None

    def spend(self, publisher: OpenPublisher, size: int, now: float) -> None:
        """It has published this many bytes."""
        if publisher.messages is not None:
            publisher.messages.spend(1, now)
        if publisher.bytes is not None:
            publisher.bytes.spend(size, now)
