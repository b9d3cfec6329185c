"""`python -m plimsoll.telemetry --config FILE` runs one collector."""

import sys

from plimsoll.telemetry.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
