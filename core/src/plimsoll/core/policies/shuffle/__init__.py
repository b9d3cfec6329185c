"""Shuffle: a plan for all brokers at once, and the order in which it may be carried out. BAD 2019."""

from plimsoll.core.policies.shuffle.plan import ShufflePlan
from plimsoll.core.policies.shuffle.policy import Shuffle

__all__ = ["Shuffle", "ShufflePlan"]
