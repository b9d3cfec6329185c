"""`python -m plimsoll.feeds --config FILE` runs one recorder."""

import sys

from plimsoll.feeds.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
