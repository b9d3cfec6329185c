"""`plimsoll client-config`: print a connection file, for `Connection.from_file` and the examples."""

from __future__ import annotations

import argparse

from plimsoll.cli.contexts.fleet_choice import AddressChoice, KubernetesChoice, choose_fleet
from plimsoll.cli.exit_codes import BAD_INPUT, OK, CommandError
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

        print_lines(kubernetes_connection_file(choice, options.name, options.cluster))
    else:
        print_lines(local_connection_file(choice, options.cluster))
    return OK
