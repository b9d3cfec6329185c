"""A policy that changes while an edge runs: what the edge has measured and promised stays.

Samples stay unless they are taken in another way; a reservation stays, since a session goes on under the policy that it
began with at the mediator. What was tried in vain under the old policy may be tried again.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.balancing import estimation
from plimsoll.core.edge.balancing.agent import BalancingAgent, BalancingContext
from plimsoll.core.edge.bundle_meter import BundleMeter
from plimsoll.core.edge.topic_meter import TopicMeter
from plimsoll.core.policies.model.topic_requirements import topic_requirements
from plimsoll.core.spec.types.policy import PolicySpec


def bundle_meter_after(old: BundleMeter | None, policy: PolicySpec | None, now: float) -> BundleMeter | None:
    """The meter of bundles under a policy: None if it has none, the same one if topics are what they were."""
    own = policy.pulsar if policy is not None and policy.type == "Pulsar" else None
    if own is None:
        return None
    return old if old is not None and old.attribute == own.topic_attribute else BundleMeter(own, now)


def topic_meter_after(old: TopicMeter | None, policy: PolicySpec | None, head: str, now: float) -> TopicMeter | None:
    """The meter of topics under a policy: None if it defends no deadlines, the same one with what it requires now."""
    required = topic_requirements(policy)
    if required is None:
        return None
    if old is None or old.required.attribute != required.attribute:
        return TopicMeter(required, head, now)
    old.required = required
    return old


def agent_after(
    host: BalancingContext, config: BrokerConfig, old: BalancingAgent | None, text: str
) -> BalancingAgent | None:
    """The agent under the policy that a head has sent: the same one if nothing has changed, None without a policy.

    A text that cannot be read changes nothing: it may be of a later version.
    """
    try:
        policy = estimation.policy_of(msgspec.json.decode(text)) if text else None
    except (AttributeError, RecursionError, TypeError, ValueError):
        host.counters["policies_refused"] += 1
        return old
    if policy is None or old is None:
        return None if policy is None else BalancingAgent(host, config, policy)
    if policy == old.policy:
        return old
    new = BalancingAgent(host, config, policy)
    if policy.estimation == old.policy.estimation:
        new.keep_samples(old)
    before, after = old.load_monitor, new.load_monitor
    after.reservation, after.own, after.others = before.reservation, before.own, before.others
    after.memory = replace(before.memory, futile=())
    return new
