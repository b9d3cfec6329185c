"""The bearer token between mediators and collectors, derived from a secret that both have."""

from __future__ import annotations

import hashlib


def bearer_token(secret: str) -> str:
    """The token, derived from the collectors' secret key. It does not reveal the key."""
    return hashlib.sha256(b"plimsoll sessions " + secret.strip().encode()).hexdigest()
