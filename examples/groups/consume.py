"""A consumer of the group `readings`: `python consume.py app.json worker-1`, each with a name of its own."""

import sys

from plimsoll.client import Connection

with Connection.from_file(sys.argv[1]) as connection:
    group = connection.group("readings")
    with group.subscribe(name=sys.argv[2], on_change=lambda change: print(change, flush=True)) as member:
        for item in member:
            print(item.slice, item.gap.reason if item.is_gap else item.attributes, flush=True)
