"""The token between mediators and collectors: the same for all that know the secret, and not the secret itself."""

from __future__ import annotations

from plimsoll.telemetry.credentials import bearer_token


def test_the_token_follows_from_the_secret_and_does_not_show_it():
    assert bearer_token("secret") == bearer_token(" secret\n")
    assert bearer_token("secret") != bearer_token("another")
    assert "secret" not in bearer_token("secret")
