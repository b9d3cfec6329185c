"""`python -m plimsoll.experiments`."""

import sys

from plimsoll.experiments.command import main

if __name__ == "__main__":
    sys.exit(main())
