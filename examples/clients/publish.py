"""Publish ten quotes and wait until a head has accepted them: `python publish.py app.json`."""

import sys

from plimsoll.client import Connection, Publisher

with Connection.from_file(sys.argv[1]) as connection, Publisher(connection) as publisher:
    for day in range(10):
        publisher.publish({"class": "STOCK", "symbol": "AAPL", "day": day, "high": 25.0 + day})
    print(publisher.flush())
