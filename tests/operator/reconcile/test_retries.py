"""Failed steps are reported and retried: soon after a conflict or an outage, later after a refusal."""

import pytest

from plimsoll.operator.api import ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.backoff import LONGEST_PAUSE_SECONDS
from plimsoll.operator.reconcile.retries import CONFLICT_SECONDS, RETRY_SECONDS, StepRetries, is_api_unavailable

STEP = ("apply", "Secret/x")


@pytest.mark.parametrize(
    ("code", "away"), [(0, True), (429, True), (503, True), (504, True), (403, False), (422, False)]
)
def test_an_api_server_that_is_away_would_answer_nothing_else(code: int, away: bool):
    assert is_api_unavailable(ApiError(code, "no")) is away
    assert not is_api_unavailable(ApiConflictError("other"))
    assert not is_api_unavailable(ApiNotFoundError("gone"))


@pytest.mark.parametrize(
    ("error", "first", "longest"),
    [
        (ApiConflictError("changed"), CONFLICT_SECONDS, LONGEST_PAUSE_SECONDS),
        (ApiError(403, "quota"), RETRY_SECONDS, LONGEST_PAUSE_SECONDS),
        (ApiError(503, "away"), RETRY_SECONDS, RETRY_SECONDS),
    ],
)
def test_how_soon_it_is_tried_again(error: Exception, first: float, longest: float):
    attempts = StepRetries("ns")
    now = 0.0
    for number in range(12):
        assert attempts.failed_by(error, STEP, now) == ("Refused", str(error))
        pause = attempts.next(now)
        whole = min(first * 2.0**number, longest)
        assert whole / 2 <= pause <= whole, number
        assert not attempts.is_due(STEP, now)
        now += pause
        assert attempts.is_due(STEP, now)
