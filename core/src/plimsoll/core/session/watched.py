"""What a mediator remembers of a cluster beside its neighbours, for as long as it lives."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.core.detector import Finding, Memory


@dataclass(slots=True)
class Watched:
    """One cluster. `session`: the uid of the session between clusters that it took part in, as last seen.

    `looks`: at so many looks running it wanted balance.
    """

    memory: Memory = field(default_factory=Memory)
    finding: Finding = Finding("OK", (), "nothing has been looked at yet")  # noqa: RUF009  a frozen value
    session: str = ""
    looks: int = 0
