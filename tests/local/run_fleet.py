"""Runs a fleet of stand-in brokers: `run_fleet.py FILE...`, as `plimsoll up -f FILE...` runs real ones."""

import os
import sys
from pathlib import Path

from plimsoll.core.spec import InvalidResourcesError, parse
from plimsoll.local import manifests, runtime
from plimsoll.local.storage.fleet_folder import FleetBusyError
from plimsoll.local.supervision import child_process, supervised_broker
from plimsoll.local.supervision.broker_reconciler import FleetStartError

FAKE = str(Path(__file__).with_name("fake_broker.py"))
supervised_broker.GRACE_SECONDS = 2.0


def fake_command(config):
    return (sys.executable, FAKE, "--config", str(config), "--parent-pid", str(os.getpid()))


if __name__ == "__main__":
    try:
        child_process.LOG_BYTES = 1000
        runtime.up(parse(manifests.load(sys.argv[1:])), lambda line: print(line, flush=True), fake_command)
    except (InvalidResourcesError, FleetStartError, FleetBusyError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
