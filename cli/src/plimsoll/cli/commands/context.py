"""`plimsoll context`: name fleets, and choose the one that commands go to."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from plimsoll.cli.contexts.context_file import ContextFile, StoredContext, read_contexts, write_contexts
from plimsoll.cli.contexts.fleet_choice import known_names
from plimsoll.cli.contexts.kubeconfig import kubeconfig_contexts
from plimsoll.cli.exit_codes import BAD_INPUT, NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_line, print_lines, table
from plimsoll.core.spec.problems import suggestion
from plimsoll.local.storage.fleet_folder import fleet_folders

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/-]{0,252}")


def add(options: argparse.Namespace) -> int:
    """Store a context under a name; what it had before is replaced."""
    if not NAME.fullmatch(options.name):
        raise CommandError(BAD_INPUT, f"{options.name!r} is not a name: write letters, digits and . _ @ : / -")
    made = _context(options)
    stored = read_contexts()
    what = "changed" if options.name in stored.contexts else "added"
    write_contexts(ContextFile(stored.current, {**stored.contexts, options.name: made}))
    print_line(f"context {options.name} {what}; `plimsoll context use {options.name}` lets commands go to it")
    return OK


def list_contexts(options: argparse.Namespace) -> int:
    """List stored contexts, local fleets, and contexts of the kubeconfig."""
    stored = read_contexts()
    rows = list(_rows(stored))
    if options.output == "json":
        keys = ("current", "name", "type", "where")
        found = [{**dict(zip(keys, row, strict=True)), "current": bool(row[0])} for row in rows]
        print_lines(json.dumps(found, indent=2))
    elif options.output == "name":
        for row in rows:
            print_line(row[1])
    else:
        for line in table(("CURRENT", "NAME", "TYPE", "WHERE"), rows):
            print_line(line)
    return OK


def use(options: argparse.Namespace) -> int:
    """Let commands go to a context unless they name another."""
    if (options.name is None) != options.none:
        raise CommandError(BAD_INPUT, "name a context, or write --none")
    stored = read_contexts()
    if options.name is not None:
        _require(options.name, known_names(stored))
    write_contexts(ContextFile(options.name or "", stored.contexts))
    print_line(f"commands go to {options.name}" if options.name else "no context is in use")
    return OK


def show(options: argparse.Namespace) -> int:
    """Show a context, or the one in use."""
    stored = read_contexts()
    name = options.name or stored.current
    if not name:
        raise CommandError(NOT_FOUND, "no context is in use: `plimsoll context use NAME` chooses one")
    _require(name, known_names(stored))
    rows = [(kind, where) for _, row_name, kind, where in _rows(stored) if row_name == name]
    details = msgspec.to_builtins(stored.contexts[name]) if name in stored.contexts else {}
    print_line(f"name: {name}")
    for kind, where in rows:
        print_line(f"type: {kind}")
        print_line(f"where: {where}")
    for key, value in details.items():
        print_line(f"{key}: {json.dumps(value)}")
    return OK


def delete(options: argparse.Namespace) -> int:
    """Forget a stored context."""
    stored = read_contexts()
    _require(options.name, sorted(stored.contexts), "stored context")
    rest = {name: context for name, context in stored.contexts.items() if name != options.name}
    write_contexts(ContextFile("" if stored.current == options.name else stored.current, rest))
    print_line(f"context {options.name} deleted; its fleet is as it was")
    return OK


def _require(name: str, known: list[str], what: str = "context") -> None:
    if name not in known:
        raise CommandError(NOT_FOUND, f'no {what} "{name}". {suggestion(name, known, what)}')


def _rows(stored: ContextFile) -> Iterator[tuple[str, str, str, str]]:
    """Mark, name, type and place of each context; a stored one hides a found one of its name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for folder in fleet_folders():
        found.setdefault(folder.fleet, []).append(("local", str(folder.path)))
    for name, namespace in kubeconfig_contexts().items():
        found.setdefault(name, []).append(("kubernetes", f"kubeconfig {name}, namespace {namespace or 'default'}"))
    found.update({name: [_place(context)] for name, context in stored.contexts.items()})
    for name in sorted(found):
        for kind, where in found[name]:
            yield "*" if name == stored.current else "", name, kind, where


def _place(context: StoredContext) -> tuple[str, str]:
    if context.kubernetes:
        return "kubernetes", f"kubeconfig {context.kubernetes}, namespace {context.namespace or 'of the kubeconfig'}"
    if context.fleet:
        return "local", f"fleet {context.fleet}"
    return "address", ", ".join(context.addresses) or f"heads of {context.connection_file}"


def _context(options: argparse.Namespace) -> StoredContext:
    """The context that the options describe. Raises `CommandError` if they describe none, or several."""
    fleet, namespace = getattr(options, "fleet", None), getattr(options, "namespace", None)
    at_address = options.address or options.key_file or options.server_key or options.plain
    if [bool(at_address), bool(fleet), bool(options.kubernetes)].count(True) != 1:
        raise CommandError(BAD_INPUT, "say where the fleet is by one of --address, --key-file, --fleet or --kubernetes")
    if namespace and not options.kubernetes:
        raise CommandError(BAD_INPUT, "--namespace goes with --kubernetes")
    if options.kubernetes:
        _require(options.kubernetes, sorted(kubeconfig_contexts()), "context of the kubeconfig")
        return StoredContext(kubernetes=options.kubernetes, namespace=namespace or "")
    return StoredContext(fleet=fleet) if fleet else _address_context(options)


def _address_context(options: argparse.Namespace) -> StoredContext:
    """Heads at addresses; files are stored as absolute paths, and read when a command connects."""
    for address in options.address:
        if not address.startswith(("tcp://", "ipc://")):
            raise CommandError(BAD_INPUT, f"{address!r} is not an address: write tcp://HOST:PORT")
    addresses = tuple(options.address)
    if options.plain:
        if options.key_file or options.server_key or not addresses:
            raise CommandError(BAD_INPUT, "--plain goes with --address alone: a fleet without keys needs none")
        return StoredContext(addresses=addresses, plain=True)
    if not options.key_file:
        raise CommandError(BAD_INPUT, "give --key-file FILE, or --plain if the fleet has no keys")
    path = Path(options.key_file).absolute()
    if _is_connection_file(path):
        return StoredContext(addresses=addresses, connection_file=str(path))
    if not addresses or not options.server_key:
        remedy = "give --address and --server-key, too, or a connection file"
        raise CommandError(BAD_INPUT, f"{path} holds a secret key alone: {remedy}")
    server = options.server_key
    return StoredContext(
        addresses=addresses,
        secret_key_file=str(path),
        server_key=str(Path(server).absolute()) if Path(server).is_file() else server,
    )


def _is_connection_file(path: Path) -> bool:
    try:
        return path.is_dir() or '"' in path.read_text(encoding="utf-8")  # which no key has
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(BAD_INPUT, f"cannot read {path}: {error}") from error
