"""A declared group that is removed: its members are told, and are given what the log has of it; then it ends.

Rules of the place:
- From the removal on no head stamps for the group, so what the log has of it does not grow. Publications that other
  heads have stamped before they heard may still be on their way: nothing is left only when that holds for a while.
- It ends then, or when it has been kept for its time, whatever is left. That time goes on while the head restarts.
- A head that has restarted knows what is left when its members have had time to say what they have, and the log has
  been read.
- Only a declaration brings it back, or a new member that may make groups and says what this one is. A member that comes
  back over a new link does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.core.head.groups.times import GroupTimes

OVER: Final = "over"
"""The code for members of a group that has ended."""


@dataclass(slots=True)
class Removal:
    """`text`: for members. `until`: when the group ends, whatever is left, in seconds since 1970. `empty_since`: since
    when nothing has been left, in the time of the head.
    """

    text: str
    until: float
    empty_since: float | None = None

    @classmethod
    def of(cls, group: str, until: float, times: GroupTimes) -> Removal:
        """The removal of a group that ends then at the latest."""
        text = f"group {group!r} is declared no longer; what the log has of it is given for {times.kept:g} s at most"
        return cls(text, until)

    def is_over(self, lag: int, now: float, times: GroupTimes) -> bool:
        """Whether nothing has been left for long enough. `lag`: items that have not been acknowledged."""
        if lag:
            self.empty_since = None
        elif self.empty_since is None:
            self.empty_since = now
        return self.empty_since is not None and now > self.empty_since + times.gone


def ending(group: str, lag: int) -> str:
    """What members of a group that ends are told."""
    left = f"{lag} items of it were not processed" if lag else "all of it has been processed"
    return f"group {group!r} was declared no longer, and has ended; {left}"
