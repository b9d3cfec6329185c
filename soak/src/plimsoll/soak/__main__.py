"""`python -m plimsoll.soak`."""

import sys

from plimsoll.soak.command import main

if __name__ == "__main__":
    sys.exit(main())
