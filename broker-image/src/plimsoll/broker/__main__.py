"""`python -m plimsoll.broker`: start one broker; as the first process of a container, keep it running."""

import os
import sys

if __name__ == "__main__":
    if os.getpid() == 1:  # it does without the broker's libraries
        from plimsoll.broker import crash_restarts

        sys.exit(crash_restarts.main(sys.argv[1:]))
    from plimsoll.broker.main import main

    sys.exit(main(sys.argv[1:]))
