"""Whether a fleet would keep its datasets and ledgers at another place while they are in use there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plimsoll.core.spec.kinds import BrokerFleetSpec, FeedSpec
from plimsoll.core.spec.problems import ResourceProblem
from plimsoll.core.spec.resources import Resource
from plimsoll.core.spec.types.fleet import DatasetsSpec


def moved_datasets(
    had: DatasetsSpec, fleet: Resource[BrokerFleetSpec], feeds: Iterable[FeedSpec], *, has_channels: bool
) -> Iterator[ResourceProblem]:
    """The changes that feeds and channels which run on Kubernetes would not survive.

    At another place a feed begins again, and so does a channel, which publishes its results twice.
    """
    has = fleet.spec.datasets
    remedy = "Take the change back, or delete {} first: at another place they begin again."
    if has_channels and had.ledgers != has.ledgers and (had.ledgers or had.volume_claim):
        found = "channels have their ledgers there"
        yield fleet.problem(("spec", "datasets", "ledgers"), found, remedy.format("the channels"))
    if not had.volume_claim or had.volume_claim == has.volume_claim:
        return
    users = ["feeds have their datasets"] if any("://" not in each.path for each in feeds) else []
    users += ["channels have their ledgers"] if has_channels and not had.ledgers else []
    if users:
        names = " and ".join(each.partition(" ")[0] for each in users)
        found = f"{' and '.join(users)} on the volume {had.volume_claim}"
        yield fleet.problem(("spec", "datasets", "volumeClaim"), found, remedy.format(f"the {names}"))
