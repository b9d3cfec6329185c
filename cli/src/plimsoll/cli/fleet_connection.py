"""How a command connects to the heads of a fleet, as an application does, wherever addresses and keys are kept."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from plimsoll.cli.contexts.context_file import StoredContext
from plimsoll.cli.contexts.fleet_choice import AddressChoice, FleetChoice, KubernetesChoice, LocalChoice, choose_fleet
from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, NOT_FOUND, CommandError
from plimsoll.cli.selectors import select_fleet
from plimsoll.client import Address, Connection, Curve, errors
from plimsoll.client.connection_file import ConnectionSettings, connection_file_text, read_connection_file
from plimsoll.local.feed_access import has_no_keys, served_feeds
from plimsoll.local.head_access import (
    HeadAccessError,
    all_head_access,
    application_key,
    check_running,
    named_clients,
)


@contextmanager
def open_connection(options: argparse.Namespace) -> Iterator[Connection]:
    """A connection to the fleet that the options select; errors of the library become errors of the command."""
    try:
        settings = connection_settings(options)
        with Connection(settings.heads, security=settings.security) as connection:
            connection.wait_open()
            yield connection
    except HeadAccessError as error:
        raise CommandError(NOT_FOUND, str(error)) from error
    except (errors.ParseError, errors.PublicationError, errors.SubscriptionRefusedError) as error:
        raise CommandError(BAD_INPUT, str(error)) from error
    except errors.ClientError as error:
        raise CommandError(FAILED, str(error)) from error


def connection_settings(options: argparse.Namespace) -> ConnectionSettings:
    """Addresses and keys of the fleet that the options select, or of its cluster `--cluster`.

    Raises:
        CommandError, HeadAccessError, SecurityError, ConnectionFileError: there is no way to connect, and why.

    """
    return _settings(choose_fleet(options), options.client, options.cluster)


def _settings(choice: FleetChoice, client: str | None, cluster: str | None) -> ConnectionSettings:
    if isinstance(choice, AddressChoice):
        return address_settings(choice, cluster)
    if isinstance(choice, KubernetesChoice):
        from plimsoll.cli.kubernetes_clients import client_settings

        return client_settings(choice, client, cluster)
    return local_settings(choice, client, cluster)


def feed_settings(options: argparse.Namespace) -> ConnectionSettings:
    """As `connection_settings`, to read feeds, whatever the cluster: for that no head on this machine has to run."""
    choice = choose_fleet(options)
    if not isinstance(choice, LocalChoice):
        return _settings(choice, options.client, None)
    folder = select_fleet(choice.fleet)
    check_running(folder)
    plain = has_no_keys(folder)
    feeds = served_feeds(folder, plain=plain)
    return ConnectionSettings(
        (), "plain" if plain else Curve(secret=application_key(folder, options.client).secret_file), feeds
    )


def local_connection_file(choice: LocalChoice, name: str, cluster: str | None) -> str:
    """The text of a connection file for a client of a local fleet; if it names none, with the key that all share."""
    folder = select_fleet(choice.fleet)
    try:
        ways = all_head_access(folder, cluster)
        pair = application_key(folder, name if named_clients(folder) else None)
    except HeadAccessError as error:
        raise CommandError(NOT_FOUND, str(error)) from error
    heads = {way.cluster: Address(way.endpoint, way.server) for way in ways}
    feeds = served_feeds(folder, plain=not ways[0].server)
    return connection_file_text(heads, (pair.public, pair.secret()) if ways[0].server else None, feeds)


def local_settings(choice: LocalChoice, client: str | None, cluster: str | None) -> ConnectionSettings:
    """Address of the first head that runs, the recorders, and the key of a client; raises as `connection_settings`."""
    folder = select_fleet(choice.fleet)
    ways = all_head_access(folder, cluster)
    heads = tuple(Address(way.endpoint, way.server) for way in ways)
    feeds = served_feeds(folder, plain=not ways[0].server)
    if not ways[0].server:
        return ConnectionSettings(heads[:1], "plain", feeds)
    return ConnectionSettings(heads[:1], Curve(secret=application_key(folder, client).secret_file), feeds)


def address_settings(choice: AddressChoice, cluster: str | None) -> ConnectionSettings:
    """Addresses and keys of a stored context; raises as `connection_settings` does."""
    context = choice.context
    if context.connection_file:
        settings = read_connection_file(context.connection_file, cluster or "")
        return _at_addresses(settings, context) if context.addresses else settings
    if cluster:
        raise CommandError(BAD_INPUT, f"context {choice.name} names addresses, not clusters: leave --cluster out")
    heads = tuple(Address(address) for address in context.addresses)
    if context.plain:
        return ConnectionSettings(heads, "plain")
    return ConnectionSettings(heads, Curve(secret=Path(context.secret_key_file), server=context.server_key))


def _at_addresses(settings: ConnectionSettings, context: StoredContext) -> ConnectionSettings:
    """The keys of a connection file with other addresses of its heads, in their order; of one head, all are its."""
    named = [head.endpoint for head in settings.heads]
    if len(named) not in (1, len(context.addresses)):
        remedy = f"give an --address for each of {', '.join(named)}, in this order"
        raise CommandError(BAD_INPUT, f"{context.connection_file} has several heads: {remedy}")
    endpoints = named * len(context.addresses) if len(named) == 1 else named
    heads = tuple(Address(address) for address in context.addresses)
    security = settings.security
    if isinstance(security, Curve) and isinstance(security.server, Mapping):
        pairs = zip(context.addresses, endpoints, strict=True)
        security = Curve(security.secret, {address: security.server[endpoint] for address, endpoint in pairs})
    return ConnectionSettings(heads, security, settings.feeds)
