"""The driver of channels: one for all Channels of a fleet, with any launcher.

Without executors it is a StatefulSet with Spark on two cores of its pod, which needs no rights to the API. With
executors it is the same pod with rights to theirs, or an object of an operator for Spark that submits the same program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from plimsoll.channels.config import DriverConfig, channel_definition
from plimsoll.channels.names import COPIES_FOLDER
from plimsoll.core.config import BrokerConfig, PeerBroker
from plimsoll.core.spec import Resources
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects import channel_launch, dataset_pods, network
from plimsoll.operator.objects.channel_launch import driver_memory_mb, driver_name
from plimsoll.operator.objects.dataset_pods import (
    CONTROL_KEYS_FOLDER,
    DATA_FOLDER,
    DRIVER_COMPONENT,
    HTTP_PORT,
    TMP_FOLDER,
    DatasetPod,
)
from plimsoll.operator.objects.pods import port_of
from plimsoll.operator.settings import OperatorSettings
from plimsoll.sparkjobs.launch import executors

GRACE_SECONDS: Final = 30
"""Time for a driver to end its batches and to hear of their results."""
START_SECONDS: Final = 300
"""It answers once Spark has started, which takes ten seconds on two idle cores."""
LEDGERS: Final = "channels"
"""The folder of the ledgers, on the volume."""
SPARE_MEMORY_MB: Final = 500
"""What a driver may use beyond what is reserved for it."""


def driver_objects(
    resources: Resources,
    brokers: Mapping[str, tuple[BrokerConfig, str]],
    settings: OperatorSettings,
    metadata: Object,
    control_key: str = "",
) -> Iterator[Object]:
    """The objects of the driver, a SparkApplication included; none without channels, or if it cannot be launched.

    `brokers`: each with its public key, by name. `control_key`: the public key of its identity at edges.
    """
    if not dataset_pods.runs_channels(resources) or channel_launch.launch_obstacle(resources, settings) is not None:
        return
    plain, namespace = resources.fleet.spec.security.plain, metadata["namespace"]
    heads = {config.cluster: config for config, _ in brokers.values() if config.role == "head"}
    connection = dataset_pods.plain_connection(heads) if plain else ""
    config = driver_config(resources, brokers, namespace)
    wanted = _driver_pod(resources, config, channel_launch.driver_image(resources, settings), control_key)
    if not channel_launch.has_executors(resources):
        yield from dataset_pods.pod_objects(resources, wanted, metadata, connection)
        return
    launch = channel_launch.launch_request(resources, settings, metadata)
    yield from executors.service_account_objects(launch)
    yield from network.executor_policies(resources.fleet.name, launch.job, metadata)
    # A driver with executors waits until its own pod is ready, and so must be before Spark has started.
    wanted = replace(wanted, account=launch.name, is_ready_at_once=True)
    if resources.fleet.spec.datasets.spark.launcher == "Kubernetes":
        yield executors.executor_template(launch)
        wanted = replace(
            wanted, environment=tuple(executors.python_environment(launch)),
            executor_template=executors.template_name(launch),
            annotations={executors.TEMPLATE_HASH: executors.template_hash(launch)},
        )  # fmt: skip
        yield from dataset_pods.pod_objects(resources, wanted, metadata, connection)
    else:
        yield dataset_pods.config_map(resources, wanted, metadata, connection)
        yield channel_launch.application(resources, launch, wanted)


def _driver_pod(resources: Resources, config: DriverConfig, image: str, control_key: str) -> DatasetPod:
    plain, memory_mb = resources.fleet.spec.security.plain, driver_memory_mb(len(config.channels))
    return DatasetPod(
        name=driver_name(resources.fleet.name),
        component=DRIVER_COMPONENT,
        image=image,
        command=("python3", "-m", "plimsoll.channels", *channel_launch.ARGUMENTS),
        config=msgspec.json.encode(config).decode(),
        cpu="250m",
        memory=(f"{memory_mb - SPARE_MEMORY_MB}Mi", f"{memory_mb}Mi"),
        grace_seconds=GRACE_SECONDS,
        start_seconds=START_SECONDS,
        keys="" if plain else names.CHANNEL_KEYS,
        control_keys="" if plain else names.PARAMETER_KEYS,
        control_key=control_key,
        restarts=False,  # it reads its configuration again, and Spark takes long to start
    )


def driver_config(
    resources: Resources, brokers: Mapping[str, tuple[BrokerConfig, str]], namespace: str
) -> DriverConfig:
    """The configuration file of the driver: its channels, and the edges that it asks for parameters."""
    root, ledgers = Path(DATA_FOLDER), f"{DATA_FOLDER}/{LEDGERS}"
    # Executors read copies, too, so these are on the volume that all of them mount.
    scratch = ledgers if channel_launch.has_executors(resources) else TMP_FOLDER
    channels = [channel_definition(each, resources.feeds, root) for _, each in sorted(resources.channels.items())]
    edges = [
        PeerBroker(name=name, control=_control(config, namespace), public_key=key)
        for name, (config, key) in sorted(brokers.items())
        if config.role == "edge"
    ]
    return DriverConfig(
        name=names.PARAMETERS, folder=resources.fleet.spec.datasets.ledgers or ledgers,
        scratch=f"{scratch}/{COPIES_FOLDER}",
        connection=dataset_pods.connection_of(resources),
        edges=tuple(edges), channels=tuple(channels),
        key="" if resources.fleet.spec.security.plain else f"{CONTROL_KEYS_FOLDER}/{names.SECRET_FILE}",
        http=f"tcp://0.0.0.0:{HTTP_PORT}",
    )  # fmt: skip


def _control(config: BrokerConfig, namespace: str) -> str:
    return f"tcp://{names.host_of(config.name, namespace)}:{port_of(config.control)}"
