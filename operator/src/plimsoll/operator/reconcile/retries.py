"""When failed steps are retried, and the faults that they are reported as meanwhile."""

from __future__ import annotations

import logging
import random
from typing import NamedTuple

from plimsoll.operator.api import ApiConflictError, ApiError
from plimsoll.operator.backoff import LONGEST_PAUSE_SECONDS, Backoff

log = logging.getLogger(__name__)

RETRY_SECONDS, CONFLICT_SECONDS = 2.0, 0.25
"""The first pause after a refusal, and after a conflict with another writer; later pauses are longer."""
UNAVAILABLE_CODES = frozenset({0, 429, 503, 504})
"""HTTP codes (0: no answer) with which the API server would answer any other request now."""

TAKEN = "NameTaken"
"""The reason of a fault: an object that is needed exists, and is not the operator's."""

RetryKey = tuple[str, str]
"""What is retried with pauses of its own: a sort of step, and the name of its object."""


class Fault(NamedTuple):
    """Why something could not be done, as the reason and the message of a condition."""

    reason: str
    message: str


def is_api_unavailable(error: Exception) -> bool:
    """Whether the API server would not answer the next request either."""
    return isinstance(error, ApiError) and error.code in UNAVAILABLE_CODES


class StepRetries(Backoff):
    """The failed steps of one fleet."""

    def __init__(self, namespace: str) -> None:
        super().__init__(random.SystemRandom())
        self._namespace = namespace

    def failed_by(self, error: Exception, key: RetryKey, now: float, wanted: str = "") -> Fault:
        """Note and log a failure; returns it as a fault."""
        first = CONFLICT_SECONDS if isinstance(error, ApiConflictError) else RETRY_SECONDS
        # An API server that is away is soon back: pauses of a minute would only delay the fleet then.
        longest = RETRY_SECONDS if is_api_unavailable(error) else LONGEST_PAUSE_SECONDS
        pause = self.failed(key, now, first, wanted=wanted, longest=longest)
        log.warning("%s: %s %s failed, next try in %.1f s: %s", self._namespace, *key, pause, error)
        return Fault("Refused", str(error))
