"""`python -m plimsoll.broker`: start one broker."""

import sys

from plimsoll.broker.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
