"""The file for `spark-submit` that runs the driver of channels."""

import sys

from plimsoll.channels.main import main

sys.exit(main(sys.argv[1:]))
