"""Shuffle: a plan for all brokers at once, and in which order it may be carried out. BAD 2019."""

from plimsoll.core.policies.shuffle.policy import Shuffle
from plimsoll.core.policies.shuffle.values import Shuffled

__all__ = ["Shuffle", "Shuffled"]
