"""Addresses of this machine: which ports are free, and why one is not.

Free ports are taken from below the ephemeral range, so that a restarted broker finds its own port free.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import zlib
from collections.abc import Iterable, Iterator, Mapping

from plimsoll.core.spec import BrokerEndpoints, Resources, declared_brokers, wanted_ports
from plimsoll.core.spec.broker_config import WantedPorts
from plimsoll.core.spec.problems import InvalidResourcesError, Path, ResourceProblem

LOOPBACK = "127.0.0.1"
EVERY_INTERFACE = ("*", "0.0.0.0")  # noqa: S104  # recognised, not bound
LOWEST, HIGHEST = 20_000, 32_000


_STANDBY = ".standby"


class PortError(OSError):
    """An address cannot be bound; the message says why."""


class PortTakenError(PortError):
    """This port cannot be bound, and another one of the same address may."""


def check_ports(resources: Resources) -> None:
    """Try every address and port in the resources; raises `InvalidResourcesError` with all that are not free."""
    problems: list[ResourceProblem] = []
    wanted = wanted_ports(resources)
    with contextlib.ExitStack() as held:
        for broker, ports in wanted.items():
            cluster, path = _listener_of(resources, broker)
            for port, key in ((ports.data_port, "dataPort"), (ports.control_port, "controlPort")):
                try:
                    held.enter_context(_bound(ports.bind_address or LOOPBACK, port))
                except PortError as error:
                    own = (*path, key) if port else ("spec", "listeners", "bindAddress")
                    remedy = (
                        "Choose another one, or 0 for any free one." if port else "Name an address of this machine."
                    )
                    problems.append(resources.clusters[cluster].problem(own, str(error), remedy))
    if problems:
        raise InvalidResourcesError(list(dict.fromkeys(problems)))


def assign_addresses(
    seed: str, wanted: Mapping[str, WantedPorts], taken: Mapping[str, BrokerEndpoints]
) -> dict[str, BrokerEndpoints]:
    """An address for each broker; those in `taken` keep theirs. `seed` decides the order of ports.

    Raises:
        PortError: a requested port is not free, or no port is.

    """
    addresses = {name: taken[name] for name in wanted if name in taken}
    with contextlib.ExitStack() as held:
        candidates = _candidates(seed, {_port(e) for a in addresses.values() for e in (a.data, a.control)})
        for name, ports in wanted.items():
            if name not in addresses:
                host = ports.bind_address or LOOPBACK
                data = _bind_free_port(held, host, ports.data_port, candidates)
                control = _bind_free_port(held, host, ports.control_port, candidates)
                addresses[name] = address_of(_endpoint(host, data), _endpoint(host, control))
    return addresses


def standby_of(head: str) -> str:
    """The name of the two ports at which the processes of a head listen while they follow; no broker can have it."""
    return head + _STANDBY


def is_standby(name: str) -> bool:
    return name.endswith(_STANDBY)


def head_of(name: str) -> str:
    """The head whose ports these are."""
    return name.removesuffix(_STANDBY)


def address_of(data: str, control: str) -> BrokerEndpoints:
    """An address to connect to from this machine: loopback for a wildcard address."""
    host, _, _ = data.removeprefix("tcp://").rpartition(":")
    if host not in EVERY_INTERFACE:
        return BrokerEndpoints(data, control)
    reach_data, reach_control = (end.replace(f"//{host}:", f"//{LOOPBACK}:") for end in (data, control))
    return BrokerEndpoints(data, control, reach_data=reach_data, reach_control=reach_control)


def _bind_free_port(held: contextlib.ExitStack, host: str, port: int, candidates: Iterator[int]) -> int:
    if port:
        held.enter_context(_bound(host, port))
        return port
    for candidate in candidates:
        with contextlib.suppress(PortTakenError):  # the next one may be free
            held.enter_context(_bound(host, candidate))
            return candidate
    raise PortError(f"no free port on {host} between {LOWEST} and {HIGHEST}")


def _candidates(seed: str, taken: Iterable[int]) -> Iterator[int]:
    """Ports in an order specific to the fleet, so that a restarted fleet tends to get the same ones."""
    first = zlib.crc32(seed.encode()) % (HIGHEST - LOWEST)
    avoid = set(taken)
    for step in range(HIGHEST - LOWEST):
        port = LOWEST + (first + step) % (HIGHEST - LOWEST)
        if port not in avoid:
            yield port


def _bound(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as ZeroMQ does
    try:
        listener.bind(("0.0.0.0" if host == "*" else host.strip("[]"), port))  # noqa: S104  # `*` asks for it
        listener.listen(1)
    except OSError as error:
        listener.close()
        is_taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
        raise (PortTakenError if is_taken else PortError)(_reason(error, host, port)) from error
    return listener


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use by another process"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} may not be used by this user"
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return f'"{host}" is not an address of this machine'
    return f"port {port} of {host} cannot be bound: {error.strerror or error}"


def _endpoint(host: str, port: int) -> str:
    return f"tcp://[{host.strip('[]')}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def _port(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2] or 0)


def _listener_of(resources: Resources, broker: str) -> tuple[str, Path]:
    for cluster in resources.clusters.values():
        for index, listener in enumerate(cluster.spec.listeners.brokers):
            if listener.name == broker:
                return cluster.name, ("spec", "listeners", "brokers", index)
    return next(place.cluster for place in declared_brokers(resources) if place.name == broker), ("spec", "listeners")
