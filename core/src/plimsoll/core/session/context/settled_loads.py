"""What edges have reported since their loads have settled after a session: it is measured by the mean of it.

One report is of a second, in which an edge of 20 publications per second takes in 16 to 24 by chance. A mediator that
has restarted measures by what comes after that.
"""

from __future__ import annotations

from collections.abc import Set

from plimsoll.core.policies.model.load import BrokerLoad, mean_load

REPORTS_AT_MOST = 64
"""The most reports of an edge that count; later ones take the place of the first."""


class SettledLoads:
    """The reports of each edge of each session that is about to be measured."""

    def __init__(self) -> None:
        self._loads: dict[str, dict[str, list[BrokerLoad]]] = {}

    def note(self, uid: str, load: BrokerLoad) -> None:
        """One more report for a session; one that is known already counts once."""
        known = self._loads.setdefault(uid, {}).setdefault(load.name, [])
        if not known or (known[-1].epoch, known[-1].seq) != (load.epoch, load.seq):
            known.append(load)
            del known[:-REPORTS_AT_MOST]

    def mean(self, uid: str, edge: str) -> BrokerLoad | None:
        """The mean of what an edge has reported; None if it has reported nothing."""
        known = self._loads.get(uid, {}).get(edge)
        return mean_load(known) if known else None

    def keep(self, uids: Set[str]) -> None:
        """Forget all other sessions."""
        self._loads = {uid: loads for uid, loads in self._loads.items() if uid in uids}
