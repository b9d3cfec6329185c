"""Matching: the ids of the subscriptions that a publication satisfies, from an index that most of them never see.

`Index.match` answers with ids, `Index.match_groups` with slices of the index's leaves. Answers are exact for every
operator, the same as asking every subscription. docs/matching.md says how it works, when it is fast and when not.
"""

from plimsoll.core.matching.index import Groups, Index, StaleResultError

__all__ = ["Groups", "Index", "StaleResultError"]
