"""Recorders of feeds as pods: one for each Feed, from the image of collectors, which has all that they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from plimsoll.core.client import Address
from plimsoll.core.config import BrokerConfig
from plimsoll.core.spec import Resource, Resources
from plimsoll.core.spec.kinds import GROUP, FeedSpec
from plimsoll.core.spec.types.fleet import ClientSpec
from plimsoll.feeds.config import ServingConfig, recorder_config
from plimsoll.mediator.authorized_keys import may_read
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects import dataset_pods
from plimsoll.operator.objects.dataset_pods import DATA_FOLDER, FEED_PORT, HTTP_PORT, RECORDER_COMPONENT, DatasetPod

GRACE_SECONDS: Final = 30
"""Time for a recorder to commit what it holds."""
START_SECONDS: Final = 120
"""It answers once a head has taken its subscription, for which it waits for a minute."""
FEED_LABEL: Final = f"{GROUP}/feed"


def recorder_name(fleet: str, feed: str) -> str:
    """The StatefulSet of a feed's recorder."""
    return dataset_pods.service_name(f"{fleet}-recorder-{feed}")


def recorder_objects(
    resources: Resources, heads: Mapping[str, BrokerConfig], image: str, metadata: Object
) -> Iterator[Object]:
    """The objects of the recorders of all feeds that have a place. `heads`: by cluster."""
    plain = resources.fleet.spec.security.plain
    connection = dataset_pods.plain_connection(heads) if plain else ""
    for feed in dataset_pods.recorded_feeds(resources):
        wanted = _recorder(resources, feed, image, metadata["namespace"])
        yield from dataset_pods.pod_objects(resources, wanted, metadata, connection)


def feeds_of(resources: Resources, client: ClientSpec, key: str, namespace: str) -> dict[str, Address]:
    """The recorders of the feeds that a client may read, by feed. `key`: the public key of recorders."""
    return {
        feed.name: Address(_endpoint(resources.fleet.name, feed.name, namespace), key)
        for feed in dataset_pods.recorded_feeds(resources)
        if may_read(client, feed.name)
    }


def _endpoint(fleet: str, feed: str, namespace: str) -> str:
    return f"tcp://{names.host_of(recorder_name(fleet, feed), namespace)}:{FEED_PORT}"


def _recorder(resources: Resources, feed: Resource[FeedSpec], image: str, namespace: str) -> DatasetPod:
    root, plain = Path(DATA_FOLDER), resources.fleet.spec.security.plain
    serving = ServingConfig(
        f"tcp://*:{FEED_PORT}",
        advertised=_endpoint(resources.fleet.name, feed.name, namespace),
        key="" if plain else f"{names.KEYS_FOLDER}/{names.SECRET_FILE}",
        readers="" if plain else f"{names.AUTHORIZED_FOLDER}/{names.READERS_FILE}",
    )
    config = recorder_config(
        feed, root, dataset_pods.connection_of(resources), http=f"tcp://0.0.0.0:{HTTP_PORT}",
        serving=serving,
    )  # fmt: skip
    return DatasetPod(
        name=recorder_name(resources.fleet.name, feed.name),
        component=RECORDER_COMPONENT,
        image=image,
        command=("python", "-m", "plimsoll.feeds", "--config", f"{names.CONFIG_FOLDER}/{names.CONFIG_FILE}"),
        config=msgspec.json.encode(config).decode(),
        cpu="50m",
        memory=("160Mi", "512Mi"),
        grace_seconds=GRACE_SECONDS,
        start_seconds=START_SECONDS,
        keys="" if plain else names.RECORDER_KEYS,
        serves=True,
        labels={FEED_LABEL: feed.name},
    )
