"""Continue where an earlier run of this program stopped: `python resume.py app.json place.json`."""

import json
import sys
from pathlib import Path

from plimsoll.client import Connection, Subscriber

place = Path(sys.argv[2])
token, watermarks = json.loads(place.read_text()) if place.exists() else (None, [])
with Connection.from_file(sys.argv[1]) as connection:
    subscriber = Subscriber(connection, name="reporter", token=token, watermarks=watermarks)
    subscriber.subscribe("[class,=,'STOCK']")
    for item in subscriber.receive_many(10, timeout=10):
        print(item)
    place.write_text(json.dumps([subscriber.token, subscriber.watermarks]))
    subscriber.close(withdraw=False)
