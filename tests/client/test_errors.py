from __future__ import annotations

import pytest

from plimsoll.client import Answered, errors


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "ParseError"])
def test_everything_that_is_raised_has_one_base(name: str):
    assert issubclass(getattr(errors, name), errors.ClientError)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.PublicationError, ValueError),
        (errors.ParseError, ValueError),
        (errors.SubscriptionRefusedError, ValueError),
        (errors.SecurityError, ValueError),
        (errors.WaitTimeoutError, TimeoutError),
        (errors.ResourceLimitError, OSError),
    ],
)
def test_errors_are_also_what_callers_expect(error: type[Exception], builtin: type[Exception]):
    assert issubclass(error, builtin)


def test_errors_carry_what_programs_need():
    answer = Answered(1, 2, "refused", 1, 1)
    assert errors.NotAcceptedError("text", (answer,)).answers == (answer,)
    assert errors.FailedError("slow", "text").code == "slow"
    assert errors.PublicationError("oversized", "text").code == "oversized"
    assert str(errors.FailedError("slow", "text")) == "text"
