"""Delay-sensitive load balancing (Tao, Poslad, Bigham 2013): topics move when a deadline is in danger, and not before.

`limits` says what an edge may carry and when it is overloaded, `prediction` which rates the next look is expected to
have, `ranking` in which order topics leave, `fleet` the values of a plan, `relief` its steps, `placer` where a new
topic goes, and `policy` all of it together. docs/delay-sensitive.md has them clause by clause.
"""

from plimsoll.core.policies.delay_sensitive.policy import DelaySensitive

__all__ = ["DelaySensitive"]
