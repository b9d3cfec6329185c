"""The policy of a head's cluster, which may change while it runs: mediators send it again and again, heads pass it on.

It is passed on each time, since control messages may be lost and an edge may have started from an older configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from plimsoll.core.head.bundles import FIRST, Bundles
from plimsoll.core.head.load_exchange import LoadExchange, LoadExchangeContext
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.head.placement import Placement, policy_of
from plimsoll.core.head.publisher_topics import PublisherTopics
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.policies.registry import placer_of_spec
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Peer
from plimsoll.core.transport.load_reporter import LoadReporter


class BundleTableContext(Protocol):
    """What a table of bundles needs of a head."""

    bundles: Bundles
    owners: OwnershipTable
    topics: TopicOwners
    reporter: LoadReporter
    counters: Counter[str]

    @property
    def edges(self) -> Iterable[str]: ...

    def say_control(self, peer: Peer, *said: msg.ClusterPolicy | msg.BundleTable) -> None: ...


class ClusterPolicyContext(BundleTableContext, Protocol):
    """What a change of the policy needs of a head."""

    placement: Placement
    publisher_topics: PublisherTopics
    load_exchange: LoadExchange | None


class ClusterPolicies:
    """`policy`: the one that the head was started with. `report_seconds`: the interval of load reports."""

    def __init__(self, policy: Mapping[str, Any] | None, report_seconds: float) -> None:
        self._policy, self._report_seconds = policy, report_seconds

    def receive(self, host: ClusterPolicyContext, exchange: LoadExchangeContext, said: msg.ClusterPolicy) -> None:
        """Take over the policy, and pass it on. One that cannot be read changes nothing here."""
        try:
            policy = msgspec.json.decode(said.policy) if said.policy else None
            spec = policy_of(policy)
        except (AttributeError, RecursionError, TypeError, ValueError):
            host.counters["policies_refused"] += 1
            return
        if policy != self._policy:
            self._policy, host.placement.placer = policy, placer_of_spec(spec)
            host.bundles.take_policy(spec)
            host.topics.take_policy(spec)
            host.publisher_topics.take_policy(spec)
            if policy is None:
                host.load_exchange = None
            elif host.load_exchange is None:
                host.load_exchange = LoadExchange(exchange, self._report_seconds)
        for peer in self._peers(host):
            host.say_control(peer, said)

    def receive_bundles(self, host: BundleTableContext, said: msg.BundleTable) -> None:
        """Take over what a mediator says of bundles, and tell the edges, to which the same may have been lost."""
        if host.topics.take_table(said):
            return
        begins = host.bundles.version == FIRST and host.bundles.is_used
        if begins and host.bundles.take_ranges(said.boundaries, (said.mediator, said.version)):
            self._adopt(host)  # units outlive a policy with bundles, and are there when the next one comes
        if not host.bundles.take_table(said):
            host.counters["bundle_tables_refused"] += 1
            return
        if host.bundles.is_vacant(said):
            self._adopt(host)
        for peer in self._peers(host):
            host.say_control(peer, host.bundles.table(said.released))

    def _adopt(self, host: BundleTableContext) -> None:
        host.bundles.adopt({name: owner.edge for name, owner in host.owners.entries.items()})

    def _peers(self, host: BundleTableContext) -> Iterable[Peer]:
        found = (host.reporter.brokers.get(name) for name in host.edges)
        return [peer for peer in found if peer is not None]
