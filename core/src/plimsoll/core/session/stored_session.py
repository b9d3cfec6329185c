"""A session as it is stored: plain mappings with camelCase names, times in seconds since 1970, and no default values.

A session that was stored in the version before is read, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plimsoll.core.session.state import Session, SessionKind

_R = TypeVar("_R", bound=Struct)

_SESSION_TIMES = ("requested_at", "queued_at", "phase_at", "deadline_at", "started_at", "moving_at", "retry_at")
_OFFER_TIMES = ("asked_at",)
_BATCH_TIMES = ("begun_at", "since", "ready_at", "cut_at", "ended_at")


def shift_back(session: Session, seconds: float) -> Session:
    """The session with all its times earlier by `seconds`."""
    batches = [_shifted(batch, _BATCH_TIMES, seconds) for batch in session.batches]
    offers = [_shifted(offer, _OFFER_TIMES, seconds) for offer in session.offers]
    return replace(_shifted(session, _SESSION_TIMES, seconds), batches=batches, offers=offers)


def _shifted(record: _R, names: tuple[str, ...], seconds: float) -> _R:
    return replace(record, **{name: at - seconds for name in names if (at := getattr(record, name)) is not None})


def encode(session: Session) -> dict[str, Any]:
    """A session as plain mappings, lists and scalars."""
    plain: dict[str, Any] = msgspec.to_builtins(session)
    return plain


def decode(plain: object) -> Session:
    """Read what `encode` wrote, in this version or in the one before.

    Raises:
        ValueError: naming the place and the value found.

    """
    try:
        return msgspec.convert(_with_kind(plain), Session)
    except msgspec.ValidationError as error:
        raise ValueError(f"this is not a stored session: {error}") from error


_FLAGS_BEFORE_KINDS: Final[tuple[tuple[str, SessionKind], ...]] = (
    ("isShuffle", "shuffle"), ("isDrain", "drain"), ("between", "clusters"), ("byPolicy", "balance"),
    ("isParent", "spread"),
)  # fmt: skip


def _with_kind(plain: Any) -> Any:
    """Sessions stored before there were kinds have flags. Unread, a drain under way would come back as a move."""
    if not isinstance(plain, Mapping) or "kind" in plain:
        return plain
    kind = next((kind for flag, kind in _FLAGS_BEFORE_KINDS if plain.get(flag)), "move")
    return {**plain, "kind": kind}
