"""`plimsoll client-config`: print or write a connection file, for `Connection.from_file` and the examples."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from plimsoll.cli.contexts.fleet_choice import AddressChoice, KubernetesChoice, choose_fleet
from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, OK, CommandError
from plimsoll.cli.fleet_connection import local_connection_file
from plimsoll.cli.output import print_lines


def client_config(options: argparse.Namespace) -> int:
    """Print the connection file of an application. It holds a secret key: keep it readable by its user alone."""
    choice = choose_fleet(options)
    if isinstance(choice, AddressChoice):
        remedy = "the keys of an application are made where the fleet runs, and you have those of this context"
        raise CommandError(BAD_INPUT, f"context {choice.name} is an address: {remedy}")
    if isinstance(choice, KubernetesChoice):
        from plimsoll.cli.kubernetes_clients import kubernetes_connection_file

        text = kubernetes_connection_file(choice, options.name, options.cluster)
    else:
        text = local_connection_file(choice, options.name, options.cluster)
    if options.write is None:
        print_lines(text)
    else:
        write_private(options.write, text)
    return OK


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone may read, also if it was there with other rights.

    Raises:
        CommandError: it cannot be written.

    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text + "\n")
    except OSError as error:
        raise CommandError(FAILED, f"{path} cannot be written: {error.strerror}") from error
