"""The driver of channels as a pod: one for all Channels of a fleet, with Spark on two cores of the pod itself.

A batch hands Spark the new rows from the driver, so executors in pods of their own would first have to be sent them.
Without executors a driver needs no rights to the API, half of the memory, and starts in two thirds of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from plimsoll.channels.config import DriverConfig, channel_definition
from plimsoll.core.config import BrokerConfig, PeerBroker
from plimsoll.core.spec import Resources
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects import dataset_pods
from plimsoll.operator.objects.dataset_pods import (
    CONTROL_KEYS_FOLDER,
    DATA_FOLDER,
    DRIVER_COMPONENT,
    HTTP_PORT,
    TMP_FOLDER,
    DatasetPod,
)
from plimsoll.operator.objects.pods import port_of

GRACE_SECONDS: Final = 30
"""Time for a driver to end its batches and to hear of their results."""
START_SECONDS: Final = 300
"""It answers once Spark has started, which takes ten seconds on two idle cores."""
SCRATCH: Final = f"{TMP_FOLDER}/copies"
LEDGERS: Final = "channels"
"""The folder of the ledgers, on the volume."""


def driver_name(fleet: str) -> str:
    """The StatefulSet of a fleet's driver."""
    return dataset_pods.short_name(f"{fleet}-channels")


def driver_objects(
    resources: Resources,
    brokers: Mapping[str, tuple[BrokerConfig, str]],
    image: str,
    metadata: Object,
    control_key: str = "",
) -> Iterator[Object]:
    """The objects of the driver; none without channels or a volume. `brokers`: each with its public key, by name.

    `control_key`: the public key of its identity at edges.
    """
    if not dataset_pods.runs_channels(resources):
        return
    plain, namespace = resources.fleet.spec.security.plain, metadata["namespace"]
    heads = {config.cluster: config for config, _ in brokers.values() if config.role == "head"}
    wanted = DatasetPod(
        name=driver_name(resources.fleet.name),
        component=DRIVER_COMPONENT,
        image=image,
        command=("python3", "-m", "plimsoll.channels", "--config", f"{names.CONFIG_FOLDER}/{names.CONFIG_FILE}"),
        config=msgspec.json.encode(driver_config(resources, brokers, namespace)).decode(),
        cpu="250m",
        memory=("1500Mi", "2000Mi"),
        grace_seconds=GRACE_SECONDS,
        start_seconds=START_SECONDS,
        keys="" if plain else names.CHANNEL_KEYS,
        control_keys="" if plain else names.PARAMETER_KEYS,
        control_key=control_key,
        restarts=False,  # it reads its configuration again, and Spark takes long to start
    )
    yield from dataset_pods.pod_objects(
        resources, wanted, metadata, dataset_pods.plain_connection(heads) if plain else ""
    )


def driver_config(
    resources: Resources, brokers: Mapping[str, tuple[BrokerConfig, str]], namespace: str
) -> DriverConfig:
    """The configuration file of the driver: its channels, and the edges that it asks for parameters."""
    root = Path(DATA_FOLDER)
    channels = [channel_definition(each, resources.feeds, root) for _, each in sorted(resources.channels.items())]
    edges = [
        PeerBroker(name=name, control=_control(config, namespace), public_key=key)
        for name, (config, key) in sorted(brokers.items())
        if config.role == "edge"
    ]
    return DriverConfig(
        name=names.PARAMETERS, folder=resources.fleet.spec.datasets.ledgers or str(root / LEDGERS), scratch=SCRATCH,
        connection=dataset_pods.connection_of(resources),
        edges=tuple(edges), channels=tuple(channels),
        key="" if resources.fleet.spec.security.plain else f"{CONTROL_KEYS_FOLDER}/{names.SECRET_FILE}",
        http=f"tcp://0.0.0.0:{HTTP_PORT}",
    )  # fmt: skip


def _control(config: BrokerConfig, namespace: str) -> str:
    return f"tcp://{names.host_of(config.name, namespace)}:{port_of(config.control)}"
