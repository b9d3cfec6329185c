"""Generated files are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_commands_is_what_the_parser_has():
    made = subprocess.run(
        [sys.executable, "scripts/make_command_table.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, ""), "run `make commands`"


def test_definitions_and_tables_are_what_the_code_makes():
    made = subprocess.run(
        [sys.executable, "scripts/make_crds.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stderr) == (0, ""), "run `make crds`"
