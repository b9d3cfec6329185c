"""Continue where an earlier run of this program stopped: `python resume.py tcp://127.0.0.1:7000 place.json`."""

import json
import sys
from pathlib import Path

from plimsoll.client import Subscriber

place = Path(sys.argv[2])
token, watermarks = json.loads(place.read_text()) if place.exists() else (None, [])
with Subscriber(sys.argv[1], name="reporter", security="plain", token=token, watermarks=watermarks) as subscriber:
    subscriber.subscribe("[class,=,'STOCK']")
    for item in subscriber.receive_many(10, timeout=10):
        print(item)
    place.write_text(json.dumps([subscriber.token, subscriber.watermarks]))
    subscriber.close(withdraw=False)
