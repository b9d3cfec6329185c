"""Look for seeds that find mutants: `python -m tests.simulator.mutants [--seeds N] [--from S] [NAME ...]`.

Without names it searches for the mutants without a recorded find, or whose recorded run no longer finds them. Finds are
recorded in `found.json`, which the tests replay and from which the table in docs/mutants.md is written.
"""

from __future__ import annotations

import argparse
import sys
from fnmatch import fnmatch

from tests.simulator.mutants import table
from tests.simulator.mutants.catalogue import ALL
from tests.simulator.mutants.finding import find, holds, record, recorded
from tests.simulator.mutants.scripted import SCRIPTED


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a mutant, or a pattern such as 'gap-*'")
    parser.add_argument(
        "--seeds", type=int, default=100, metavar="N", help="number of seeds of each world (default 100)"
    )
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="S", help="the first seed (default 0)")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    options = parser.parse_args()
    finds = {name: one for name, one in recorded().items() if name in ALL}
    names = [name for name in ALL if any(fnmatch(name, pattern) for pattern in options.names or ["*"])]
    for name in [] if options.table else names:
        known, mutant = finds.get(name), ALL[name]
        is_done = known is not None and (holds(mutant, known) if known.world else mutant.harmless or name in SCRIPTED)
        if is_done and not options.names:
            continue
        try:
            one = find(mutant, options.seeds, options.first)
        except LookupError as error:
            print(f"{name}: {error}", flush=True)
            continue
        if not one.world and known is not None and not known.world:
            one = one._replace(runs=one.runs + known.runs)
        where = f"{one.world} {one.seed} breaks {', '.join(one.laws)}" if one.world else "NOT FOUND"
        where = "harmless" if mutant.harmless and not one.world else where
        print(f"{name}: {where} ({one.runs} runs)", flush=True)
        finds = {**recorded(), name: one}  # another search may have recorded more meanwhile
        record({each: finds[each] for each in ALL if each in finds})
    table.write(finds)
    return 0


sys.exit(main())
