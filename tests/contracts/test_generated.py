"""Generated files are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_definitions_and_tables_are_what_the_code_makes():
    made = subprocess.run(
        [sys.executable, "scripts/make_crds.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stderr) == (0, ""), "run `make crds`"
