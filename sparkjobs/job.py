"""The file for `spark-submit`; the first argument is the job."""

import sys

from plimsoll.sparkjobs.__main__ import main

sys.exit(main(sys.argv[1:]))
