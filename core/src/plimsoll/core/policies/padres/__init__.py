"""PADRES load balancing: three offload algorithms over report cards. PADRES 2006, section 5.

Each is given two brokers and a profile of the source, and chooses what should move until one metric is balanced. What
the paper leaves open, and what is stricter here, is said in `cards`.
"""

from plimsoll.core.policies.padres.policy import Padres

__all__ = ["Padres"]
