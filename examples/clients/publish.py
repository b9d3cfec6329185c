"""Publish ten quotes and wait until a head has accepted them: `python publish.py tcp://127.0.0.1:7000`."""

import sys

from plimsoll.client import Publisher

with Publisher(sys.argv[1], security="plain") as publisher:
    for day in range(10):
        publisher.publish({"class": "STOCK", "symbol": "AAPL", "day": day, "high": 25.0 + day})
    print(publisher.flush())
