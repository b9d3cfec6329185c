"""What a shell is offered: kinds, names of objects, contexts and fleets, looked up when the key is pressed.

A look-up that fails offers nothing: an error has no place in the middle of a command line that is being written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from plimsoll.cli.exit_codes import CommandError

OF_KIND = {"source": "EdgeBroker", "target": "EdgeBroker", "edge": "EdgeBroker", "session": "LoadBalancingSession",
           "cluster": "BrokerCluster", "other": "BrokerCluster"}  # fmt: skip
"""The kind of the objects that an argument names, by its destination."""
Completer = Callable[..., list[str]]


def complete(top: argparse.ArgumentParser) -> None:
    """Answer the shell, and end; returns if no shell asks."""
    import argcomplete

    for made in _parsers(top):
        for action in made._actions:
            completer = _completer(action)
            if completer is not None:
                action.completer = completer  # type: ignore[attr-defined]  # where argcomplete looks for it
    argcomplete.autocomplete(top)


def _parsers(made: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield made
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)


def _completer(action: argparse.Action) -> Completer | None:
    if action.dest in ("context", "fleet", "fleet_name"):
        return _offered(_fleet_names if action.dest != "context" else _context_names)
    if action.dest == "kind":
        return _offered(_kind_words)
    if action.dest == "broker":
        return _offered(_broker_names)
    if action.dest in OF_KIND:
        return _offered(lambda options: _object_names(options, OF_KIND[action.dest]))
    if action.dest == "name" and not action.option_strings:
        return _offered(_names)
    return None


def _offered(names: Callable[[argparse.Namespace], list[str]]) -> Completer:
    def completer(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
        try:
            return [name for name in names(parsed_args) if name.startswith(prefix)]
        except (CommandError, LookupError, OSError, ImportError):
            return []

    return completer


def _kind_words(options: argparse.Namespace) -> list[str]:
    from plimsoll.core.spec import KINDS

    return [word for kind in KINDS.values() for word in (kind.short, kind.plural)]


def _names(options: argparse.Namespace) -> list[str]:
    """The names that a command with KIND and NAME may mean, or those of contexts."""
    if not getattr(options, "kind", None):
        return _context_names(options)
    from plimsoll.cli.selectors import resolve_kind

    return _object_names(options, resolve_kind(options.kind).name)


def _broker_names(options: argparse.Namespace) -> list[str]:
    heads = [f"{name}-head" for name in _object_names(options, "BrokerCluster")]
    return [*_object_names(options, "EdgeBroker"), *heads]


def _object_names(options: argparse.Namespace, kind: str) -> list[str]:
    from plimsoll.cli.backend import choose_backend

    return [str(item["metadata"]["name"]) for item in choose_backend(options).objects(kind)]


def _context_names(options: argparse.Namespace) -> list[str]:
    from plimsoll.cli.contexts.fleet_choice import known_names

    return known_names()


def _fleet_names(options: argparse.Namespace) -> list[str]:
    from plimsoll.local.storage.fleet_folder import fleet_folders

    return [folder.fleet for folder in fleet_folders()]
