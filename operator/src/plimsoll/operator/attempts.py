"""What the API server refuses or somebody else is quicker with: how it is called, said, and when it is tried again."""

from __future__ import annotations

import logging
import random

from plimsoll.operator.api import ApiError, ConflictError
from plimsoll.operator.retries import LONGEST_PAUSE_SECONDS, Retries

log = logging.getLogger(__name__)

RETRY_SECONDS, CONFLICT_SECONDS = 2.0, 0.25
"""The first pause after what was refused, and after what somebody else was quicker with; later ones are longer."""
AWAY = frozenset({0, 429, 503, 504})
"""Answers, or none, of an API server that would not answer anything else now."""

Attempt = tuple[str, str]
"""What fails and is tried again by itself: a sort of step, and the name of what it is about."""
Fault = tuple[str, str]
"""A reason of a condition, and what is said of it."""


def is_away(error: Exception) -> bool:
    """Whether the API server would not answer the next request either."""
    return isinstance(error, ApiError) and error.code in AWAY


class Attempts(Retries):
    """The attempts of one fleet that have failed."""

    def __init__(self, namespace: str) -> None:
        super().__init__(random.SystemRandom())
        self._namespace = namespace

    def failed_by(self, error: Exception, attempt: Attempt, now: float, wanted: str = "") -> Fault:
        """Take notice of a failure; its reason, and what is said of it."""
        first = CONFLICT_SECONDS if isinstance(error, ConflictError) else RETRY_SECONDS
        longest = RETRY_SECONDS if is_away(error) else LONGEST_PAUSE_SECONDS  # its return is to be found soon
        after = self.failed(attempt, now, first, wanted=wanted, longest=longest)
        log.warning("%s: %s; tried again after %.1f s", self._namespace, error, after)
        return "Refused", str(error)
