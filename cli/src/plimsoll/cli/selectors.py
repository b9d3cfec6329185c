"""Resolves names of fleets and kinds."""

from __future__ import annotations

import os

from plimsoll.cli.exit_codes import BAD_INPUT, NOT_FOUND, CommandError
from plimsoll.core.spec import KINDS, kind_named
from plimsoll.core.spec.kinds import ResourceKind
from plimsoll.core.spec.problems import suggestion
from plimsoll.local.storage.fleet_folder import FleetFolder, fleet_folders, plimsoll_home

_ALIASES = {"session": "LoadBalancingSession", "sessions": "LoadBalancingSession"}
"""What people and pages call a kind, beside its own names."""


def select_fleet(name: str | None) -> FleetFolder:
    """The fleet of this name, or of `$PLIMSOLL_FLEET`; else the only one that runs, or the only one that exists."""
    name = name or os.environ.get("PLIMSOLL_FLEET")
    known = fleet_folders()
    if name:
        folder = next((folder for folder in known if folder.fleet == name), None)
        if folder is None:
            raise CommandError(
                NOT_FOUND, f'no fleet "{name}" in {plimsoll_home()}. {_fleet_hint([f.fleet for f in known])}'
            )
        return folder
    running = [folder for folder in known if folder.running_pid()]
    candidates = running or known
    if not candidates:
        raise CommandError(NOT_FOUND, f"no fleet in {plimsoll_home()}. Start one with `plimsoll up -f FILE`.")
    if len(candidates) > 1:
        names = ", ".join(folder.fleet for folder in candidates)
        raise CommandError(BAD_INPUT, f"several fleets: {names}. Choose one with `--fleet NAME`.")
    return candidates[0]


def resolve_kind(word: str) -> ResourceKind:
    """The kind with this name, plural or short name."""
    found = kind_named(_ALIASES.get(word.casefold(), word))
    if found is None:
        words = [*KINDS, *(k.plural for k in KINDS.values()), *(k.short for k in KINDS.values())]
        shorts = ", ".join(f"{k.name} ({k.short})" for k in KINDS.values())
        hint = suggestion(word, words, "kind")
        known = f"Kinds: {shorts}; `get` alone also shows bundles, consumers and topics."
        raise CommandError(NOT_FOUND, f'"{word}" is not a kind. {hint if "Did you" in hint else known}')
    return found


def _fleet_hint(names: list[str]) -> str:
    return f"Fleets: {', '.join(names)}." if names else "There are none; start one with `plimsoll up -f FILE`."
