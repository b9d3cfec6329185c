"""`python -m plimsoll.local.soak`."""

import sys

from plimsoll.local.soak.command import main

if __name__ == "__main__":
    sys.exit(main())
