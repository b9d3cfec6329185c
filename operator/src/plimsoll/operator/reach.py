"""How the operator reaches brokers: by the addresses of their Services, so that no name has to be resolved."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.core.config import Peer, Role
from plimsoll.operator import names
from plimsoll.operator.objects import annotation
from plimsoll.operator.observed import Observed


def reachable(observed: Observed, brokers: Mapping[str, Role]) -> dict[str, tuple[Peer, Role]]:
    """How the control socket of each broker with an address is dialled, under the key that its pod answers with."""
    found: dict[str, tuple[Peer, Role]] = {}
    for name, role in brokers.items():
        service, pod = observed.get("Service", name), observed.pod(name)
        address = str((service or {}).get("spec", {}).get("clusterIP", ""))
        if service is None or pod is None or address in ("", "None"):
            continue
        ports = {each["name"]: int(each["port"]) for each in service["spec"]["ports"]}
        host = f"[{address}]" if ":" in address else address
        peer = Peer(
            name=name,
            data=f"tcp://{host}:{ports['data']}",
            control=f"tcp://{host}:{ports['control']}",
            public_key=annotation(pod, names.KEY),
        )
        found[name] = (peer, role)
    return found
