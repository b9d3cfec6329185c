"""Matching: the ids of the subscriptions that a publication satisfies, from an index that most of them never see.

`Index.match` answers with ids, `Index.match_groups` with slices of the index's leaves. Answers are exact for every
operator, the same as asking every subscription. `warm_up` compiles the inner loop ahead of need. docs/matching.md says
how it works, when it is fast and when not.
"""

from plimsoll.core.matching.index import Index
from plimsoll.core.matching.kernel import load as _load
from plimsoll.core.matching.match_groups import MatchGroups, StaleResultError

__all__ = ["Index", "MatchGroups", "StaleResultError", "warm_up"]


def warm_up() -> bool:
    """Compile the inner loop now, seconds of work the first time; False where numba is not installed.

    Call it when a process starts, and once while an image is built: what is kept then serves a read-only root too.
    """
    return _load() is not None
