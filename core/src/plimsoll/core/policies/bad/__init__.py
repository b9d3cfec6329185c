"""Load balancing of BAD (Big Active Data, DEBS 2019): placement, migration and shuffle over loads F = I + O.

`fleet` has the values, `imbalance` the coefficient of variation, `dynamic_moves` LDM and SDM, `greedy_shuffle` the
shuffle by the letter, `policy` the stages, and `placers` where newcomers go. docs/bad.md has them clause by clause.
"""

from plimsoll.core.policies.bad.policy import Bad

__all__ = ["Bad"]
