"""The number of examples for a property that does not use the profile's number."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> int:
    """`count` in a run with sweeps; elsewhere more or fewer, as the profile of tests/conftest.py has it."""
    return max(1, count * settings().max_examples // 100)
