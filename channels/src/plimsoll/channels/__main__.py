"""`python -m plimsoll.channels --config FILE` runs the driver of a fleet's channels."""

import sys

from plimsoll.channels.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
