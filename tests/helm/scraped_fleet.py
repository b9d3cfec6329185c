"""Runs a fleet whose brokers answer Prometheus: `scraped_fleet.py FILE`, as `plimsoll up -f FILE` runs one without.

Beside each broker's configuration, CONFIG.http has the address that it answers on.
"""

import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime
from plimsoll.local.supervision.child_process import broker_command


def scraped_command(config: Path) -> Sequence[str]:
    """The command of a broker with a port for HTTP; the same one after a restart."""
    note = config.with_suffix(".http")
    if not note.exists():
        with socket.create_server(("127.0.0.1", 0)) as probe:
            note.write_text(f"127.0.0.1:{probe.getsockname()[1]}")
    given = json.loads(config.read_text()) | {"http": f"tcp://{note.read_text()}"}
    scraped = config.with_suffix(".scraped")
    scraped.write_text(json.dumps(given))
    return broker_command(scraped)


if __name__ == "__main__":
    runtime.up(parse(manifests.load(sys.argv[1:])), lambda line: print(line, flush=True), scraped_command)
