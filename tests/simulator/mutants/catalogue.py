"""All mutants, in the order of the rules."""

from __future__ import annotations

from typing import Final

from tests.simulator.mutants import (
    attachments,
    bundles,
    decision,
    durability,
    endings,
    groups,
    heads,
    lists,
    members,
    publishers,
    standby,
    streams,
    topics,
)
from tests.simulator.mutants.rewriting import Mutant

SECTIONS: Final[dict[str, list[Mutant]]] = {
    "Decision": decision.MUTANTS,
    "Streams and covers": streams.MUTANTS,
    "Attachments and the cut": attachments.MUTANTS,
    "Lists and RESUME": lists.MUTANTS,
    "Members, links and replay": members.MUTANTS,
    "Time, restarts and gaps": endings.MUTANTS,
    "Bundles of topics": bundles.MUTANTS,
    "Logs on disks": durability.MUTANTS,
    "Standbys of heads": standby.MUTANTS,
    "Topics with deadlines": topics.MUTANTS,
    "Publishers between heads": publishers.MUTANTS,
    "Overloaded heads": heads.MUTANTS,
    "Slices of consumer groups": groups.MUTANTS,
}
ALL: Final = {mutant.name: mutant for section in SECTIONS.values() for mutant in section}
