"""Which fleet is meant: the one that was named, or the only one there is."""

from __future__ import annotations

import os

from plimsoll.cli.codes import BAD_INPUT, NOT_FOUND, CommandError
from plimsoll.core.spec import KINDS, kind_named
from plimsoll.core.spec.kinds import Kind
from plimsoll.core.spec.problems import suggestion
from plimsoll.local.home import FleetFolder, fleets, home


def choose(name: str | None) -> FleetFolder:
    """The fleet called so, or in `$PLIMSOLL_FLEET`; else the only one that runs, or the only one there is."""
    name = name or os.environ.get("PLIMSOLL_FLEET")
    known = fleets()
    if name:
        folder = next((folder for folder in known if folder.fleet == name), None)
        if folder is None:
            raise CommandError(NOT_FOUND, f'no fleet "{name}" in {home()}. {_known([f.fleet for f in known])}')
        return folder
    running = [folder for folder in known if folder.running_pid()]
    candidates = running or known
    if not candidates:
        raise CommandError(NOT_FOUND, f"no fleet in {home()}. Start one with `plimsoll up -f FILE`.")
    if len(candidates) > 1:
        names = ", ".join(folder.fleet for folder in candidates)
        raise CommandError(BAD_INPUT, f"several fleets: {names}. Say which with `--fleet NAME`.")
    return candidates[0]


def kind(word: str) -> Kind:
    """The kind that is meant by a name, plural or short name."""
    found = kind_named(word)
    if found is None:
        words = [*KINDS, *(k.plural for k in KINDS.values()), *(k.short for k in KINDS.values())]
        shorts = ", ".join(f"{k.name} ({k.short})" for k in KINDS.values())
        hint = suggestion(word, words, "kind")
        raise CommandError(NOT_FOUND, f'"{word}" is not a kind. {hint if "Did you" in hint else f"Kinds: {shorts}."}')
    return found


def _known(names: list[str]) -> str:
    return f"Fleets: {', '.join(names)}." if names else "There is none; start one with `plimsoll up -f FILE`."
