"""How applications of this user reach the recorders of a local fleet, which serve the datasets of its feeds."""

from __future__ import annotations

from plimsoll.core.client import Address
from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.mediator.world.survey_run import is_plain


def has_no_keys(folder: FleetFolder) -> bool:
    """Whether its links are plain."""
    with ObjectStore(folder.store) as store:
        return is_plain(store.objects("BrokerFleet")[1])


def served_feeds(folder: FleetFolder, *, plain: bool) -> dict[str, Address]:
    """The address of each recorder that serves its dataset, by feed."""
    with ObjectStore(folder.store) as store:
        feeds = {item["metadata"]["name"]: item.get("status", {}) for item in store.objects("Feed")[1]}
    key = "" if plain else keys.key_pair(folder, keys.RECORDER).public
    return {name: Address(status["endpoint"], key) for name, status in sorted(feeds.items()) if "endpoint" in status}
