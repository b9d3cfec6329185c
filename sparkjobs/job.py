"""The file that `spark-submit` is given: its first argument names the job."""

import sys

from plimsoll.sparkjobs.__main__ import main

sys.exit(main(sys.argv[1:]))
