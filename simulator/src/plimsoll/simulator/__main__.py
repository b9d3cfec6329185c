"""`python -m plimsoll.simulator`: many seeds of every scenario, or one seed with a full trace."""

from __future__ import annotations

import sys

from plimsoll.simulator.cli import main

sys.exit(main(sys.argv[1:]))
