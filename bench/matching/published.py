"""Published figures, printed beside the measured table. Data and machines differ: compare orders of magnitude only.

`measured` marks systems that cannot be installed from PyPI, measured by hand with the paper mix on a 2-core AMD EPYC
VM, one run each (+-20-30 %). The other figures are from the cited publications.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    system: str
    subscriptions: str
    publications_per_second: str
    workload: str
    hardware: str
    source: str


EPYC = "2-core AMD EPYC VM"
FIGURES = (
    Figure(
        "PADRES Rete, Java", "2k / 10k / 100k", "3,654 / 558 / 27", "paper mix", EPYC, "measured, MSRG/padres c1ea540"
    ),
    Figure(
        "be-tree, C -O3, parsed event",
        "2k / 10k / 100k",
        "190-221k / 36-40k / 2.7k",
        "paper mix",
        EPYC,
        "measured, adgear/be-tree; split limit raised for 1000 symbols",
    ),
    Figure(
        "be-tree, C -O3, parsed event",
        "2k / 10k / 100k",
        "13.2k / 3.2k / 0.2k",
        "general mix",
        EPYC,
        "measured; floats in 0..1 are near its worst case, says its README",
    ),
    Figure("event-ruler 2.0.1, Java", "2k / 4k", "3,384 / 1,109", "paper mix", EPYC, "measured, AWS event-ruler"),
    Figure(
        "event-ruler, symbol sorted first", "2k / 10k", "29.6k / 5.4k", "paper mix", EPYC, "measured, its best case"
    ),
    Figure(
        "event-ruler", "5 rules of each kind", "> 120k numeric, > 220k exact", "900-byte JSON", "2019 MacBook", "README"
    ),
    Figure("quamina, Go", "-", "'millions' for equality", "no numeric ranges", "-", "README, PATTERNS.md"),
    Figure("A-Tree", "1.39M expressions", "625", "ads, 122 dimensions", "Intel, 2.2 GHz", "SIGMOD 2021, table 4"),
    Figure("PS-Tree (hash)", "3M", "4,200", "ads, ~8 predicates", "Intel, 2.66 GHz", "PVLDB 12(3) 2018, table 2"),
    Figure("BE-Tree", "3M", "440", "ads, ~8 predicates", "Intel, 2.66 GHz", "as given in PVLDB 12(3) 2018, table 2"),
    Figure("OpIndex", "3M", "310", "ads, ~8 predicates", "Intel, 2.66 GHz", "as given in PVLDB 12(3) 2018, table 2"),
    Figure("naive scan", "3M", "2.3", "ads, ~8 predicates", "Intel, 2.66 GHz", "as given in PVLDB 12(3) 2018, table 2"),
)
