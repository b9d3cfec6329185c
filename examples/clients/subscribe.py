"""Print quotes above 30 as they come: `python subscribe.py tcp://127.0.0.1:7000`."""

import sys

from plimsoll.client import GapNotice, Subscriber

with Subscriber(sys.argv[1], security="plain") as subscriber:
    subscriber.subscribe("[class,=,'STOCK'],[high,>,30.0]")
    for item in subscriber:
        print(f"gap: {item.reason}" if isinstance(item, GapNotice) else item.attributes, flush=True)
