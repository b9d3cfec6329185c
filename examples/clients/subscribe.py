"""Print quotes above 30 as they come: `python subscribe.py app.json`."""

import sys

from plimsoll.client import Connection, GapNotice, Subscriber

with Connection.from_file(sys.argv[1]) as connection, Subscriber(connection) as subscriber:
    subscriber.subscribe("[class,=,'STOCK'],[high,>,30.0]")
    for item in subscriber:
        print(f"gap: {item.reason}" if isinstance(item, GapNotice) else item.attributes, flush=True)
