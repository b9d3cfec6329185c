"""PADRES load balancing: three offload algorithms over report cards. PADRES 2006, section 5.

Each algorithm takes two brokers and a profile of the source, and chooses what should move until one metric is
balanced. `report_cards` explains what the paper leaves open and where this implementation is stricter.
"""

from plimsoll.core.policies.padres.policy import Padres

__all__ = ["Padres"]
