"""Key replacement: a pure function from a Secret and a request to the next step.

A new text in the annotation `plimsoll.dev/rotate-keys` of a fleet or an edge requests it. First a second pair is
created and its public key is authorised everywhere; after an overlap it replaces the first. A head takes it while it
runs; an edge is evacuated and restarted. Once the old key is out of use, it is no longer authorised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import annotation
from plimsoll.operator.reconcile.observed import unix_seconds
from plimsoll.operator.security.keys import NEXT_PUBLIC, NEXT_SECRET, OLD_PUBLIC, Z85KeyPair, base64_text

OVERLAP_SECONDS = 30.0
"""Time until all brokers have read a new key: kubelets update files at once, brokers look every second."""
HEAD_OVERLAP_SECONDS = 120.0
"""Applications read a head's next key, too, and their kubelets update mounted Secrets only every minute or so."""
CLIENT_OVERLAP_SECONDS = 3600.0
"""A client's old key stays accepted for this long: applications may read their Secret only at their start."""
STEP_AT = f"{names.ROTATED}-at"

SecretPatch = Mapping[str, Any]


def rotation_patch(
    secret: Object,
    asked: str,
    *,
    in_use: str | None,
    make: Callable[[], Z85KeyPair],
    time: str,
    overlap: float = OVERLAP_SECONDS,
) -> SecretPatch | None:
    """The due patch of a Secret, or None.

    `asked`: the text of the request. `in_use`: the public key that its holder uses now; None if that cannot be known,
    as for clients. `make` creates a key pair. `time`: now, in RFC 3339. `overlap`: the seconds that others have to read
    the next key before it is used.
    """
    data, now = secret.get("data") or {}, unix_seconds(time)
    since = annotation(secret, STEP_AT)
    age = now - unix_seconds(since) if since else 0.0
    if OLD_PUBLIC in data:
        gone = (
            age >= CLIENT_OVERLAP_SECONDS if in_use is None else base64_text(f"{in_use}\n") == data[names.PUBLIC_FILE]
        )
        return _patch({OLD_PUBLIC: None}, time) if gone else None
    if NEXT_PUBLIC in data:
        return _change_over(data, time, asked) if age >= overlap else None
    if asked and asked != annotation(secret, names.ROTATED):
        pair = make()
        return _patch(
            {NEXT_SECRET: base64_text(f"{pair.secret}\n"), NEXT_PUBLIC: base64_text(f"{pair.public}\n")}, time
        )
    return None


def _change_over(data: Mapping[str, str], time: str, asked: str) -> SecretPatch:
    changed = {
        names.SECRET_FILE: data[NEXT_SECRET],
        names.PUBLIC_FILE: data[NEXT_PUBLIC],
        OLD_PUBLIC: data[names.PUBLIC_FILE],
        NEXT_SECRET: None,
        NEXT_PUBLIC: None,
    }
    return _patch(changed, time, {names.ROTATED: asked})


def _patch(data: Mapping[str, str | None], time: str, annotations: Mapping[str, str] | None = None) -> SecretPatch:
    return {"data": dict(data), "metadata": {"annotations": {STEP_AT: time, **(annotations or {})}}}
