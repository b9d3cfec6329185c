"""How new keys follow old ones: a pure function from a Secret and a request to the next step.

A text that changes in the annotation `plimsoll.dev/rotate-keys` of a fleet or an edge asks for it. First a second pair
is made and its public key is let in everywhere; after an overlap it comes into force. A head takes it while it runs; an
edge is started anew, after its subscribers have gone elsewhere. When nobody uses the old one any more, it is let in no
longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.operator import names
from plimsoll.operator.keys import NEXT_PUBLIC, NEXT_SECRET, OLD_PUBLIC, KeyPair, encoded
from plimsoll.operator.names import Object
from plimsoll.operator.objects import annotation
from plimsoll.operator.observed import seconds

OVERLAP_SECONDS = 30.0
"""All have read the new key by then: kubelets are told at once, brokers look every second."""
HEAD_OVERLAP_SECONDS = 120.0
"""A head's next key is read by applications, too, whose kubelets bring mounted Secrets up to date in their own time."""
CLIENT_OVERLAP_SECONDS = 3600.0
"""So long a client's old key is good beside its new one: applications may have read their Secret at their start."""
STEP_AT = f"{names.ROTATED}-at"

Patch = Mapping[str, Any]


def step(
    secret: Object,
    asked: str,
    *,
    in_use: str | None,
    make: Callable[[], KeyPair],
    time: str,
    overlap: float = OVERLAP_SECONDS,
) -> Patch | None:
    """The change of a Secret that is due, if one is.

    `asked`: the text of the request. `in_use`: the public key under which its holder comes now; None where that is not
    known, as of clients. `make` gives a new pair, if one is wanted. `time`: now, as the API server writes it.
    `overlap`: so many seconds others have to read the next key before it comes into force.
    """
    data, now = secret.get("data") or {}, seconds(time)
    since = annotation(secret, STEP_AT)
    age = now - seconds(since) if since else 0.0
    if OLD_PUBLIC in data:
        gone = age >= CLIENT_OVERLAP_SECONDS if in_use is None else encoded(f"{in_use}\n") == data[names.PUBLIC_FILE]
        return _patch({OLD_PUBLIC: None}, time) if gone else None
    if NEXT_PUBLIC in data:
        return _change_over(data, time, asked) if age >= overlap else None
    if asked and asked != annotation(secret, names.ROTATED):
        pair = make()
        return _patch({NEXT_SECRET: encoded(f"{pair.secret}\n"), NEXT_PUBLIC: encoded(f"{pair.public}\n")}, time)
    return None


def _change_over(data: Mapping[str, str], time: str, asked: str) -> Patch:
    changed = {
        names.SECRET_FILE: data[NEXT_SECRET],
        names.PUBLIC_FILE: data[NEXT_PUBLIC],
        OLD_PUBLIC: data[names.PUBLIC_FILE],
        NEXT_SECRET: None,
        NEXT_PUBLIC: None,
    }
    return _patch(changed, time, {names.ROTATED: asked})


def _patch(data: Mapping[str, str | None], time: str, annotations: Mapping[str, str] | None = None) -> Patch:
    return {"data": dict(data), "metadata": {"annotations": {STEP_AT: time, **(annotations or {})}}}
