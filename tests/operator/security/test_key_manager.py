"""Keys are created for every identity, and one that cannot be created stops no other."""

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

import pytest
from tests.operator.world import FLEET, World

from plimsoll.core.spec import Resources
from plimsoll.mediator import fleet_resources as asked
from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiConflictError, ApiError
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import ref
from plimsoll.operator.reconcile import retries as trying
from plimsoll.operator.reconcile.observed import ObservedObjects, rfc3339, unix_seconds
from plimsoll.operator.reconcile.retries import StepRetries
from plimsoll.operator.security import keys, rotation
from plimsoll.operator.security.key_manager import KeyManager

CLIENT, HEAD = names.client_keys("app"), names.keys_of("east-head")


class Server(Api):
    """Stores what it is given; refuses what a test sets, and answers that a Secret of a `taken` name exists."""

    def __init__(self, world: World) -> None:
        self.world, self.refused = world, dict[str, Exception]()
        self.taken: dict[str, Object] = {}
        self.asked: list[str] = []

    async def create(self, obj: Mapping[str, Any], *, retry: bool = False) -> Object:
        name = obj["metadata"]["name"]
        self.asked.append(name)
        if (error := self.refused.get(name)) is not None:
            raise error
        if name in self.taken:
            raise ApiConflictError(name)
        return self.world.put(dict(obj))

    async def get(self, kind: str, namespace: str, name: str, *, retry: bool = False) -> Object:
        return copy.deepcopy(self.taken[name])


@pytest.fixture
def world() -> World:
    return World(FLEET)


def resources_of(world: World) -> Resources:
    return asked.fleet_resources([item for item in world.objects.values() if item["kind"] in asked.BROKER_KINDS])


def keeping(world: World, server: Server) -> KeyManager:
    def stored(item: Object) -> Object:
        world.objects[ref(item)] = item
        return item

    return KeyManager("ns", server, StepRetries("ns"), stored, lambda _: "")


def looked(one: KeyManager, world: World) -> dict[str, Any]:
    return asyncio.run(one.keys(resources_of(world), ObservedObjects(world.objects)))


def test_every_identity_gets_a_pair_and_keeps_it(world: World):
    server = Server(world)
    one = keeping(world, server)
    found = looked(one, world)
    assert {names.MEDIATOR_KEYS, CLIENT, HEAD} <= found.keys()
    assert len({held.publics for held in found.values()}) == len(found)
    assert one.faults == {}
    made = list(server.asked)
    assert looked(one, world) == found
    assert server.asked == made


def test_a_refused_secret_stops_no_other_and_is_not_retried_at_once(world: World):
    server = Server(world)
    server.refused[CLIENT] = ApiError(403, "a quota")
    one = keeping(world, server)
    found = looked(one, world)
    assert CLIENT not in found
    assert HEAD in found
    assert one.faults == {("Secret", CLIENT): ("Refused", "a quota")}
    assert one.retry_keys == {("keys", CLIENT)}
    looked(one, world)
    assert server.asked.count(CLIENT) == 1, "its pause is not over"
    assert one.faults[("Secret", CLIENT)] == ("Refused", "a quota"), "and it is still said"


def test_an_api_server_that_is_away_ends_the_look(world: World):
    server = Server(world)
    server.refused[CLIENT] = ApiError(next(iter(sorted(trying.UNAVAILABLE_CODES))), "away")
    with pytest.raises(ApiError, match="away"):
        looked(keeping(world, server), world)


def test_a_secret_of_another_owner_is_left_alone(world: World):
    server = Server(world)
    metadata = {"name": CLIENT, "namespace": "ns", "labels": {}, "uid": "theirs"}
    server.taken[CLIENT] = {"kind": "Secret", "metadata": metadata, "data": {}}
    one = keeping(world, server)
    found = looked(one, world)
    assert CLIENT not in found
    assert HEAD in found
    reason, text = one.faults[("Secret", CLIENT)]
    assert (reason, CLIENT in text) == ("NameTaken", True)


def test_what_is_there_and_holds_keys_is_read(world: World):
    server = Server(world)
    looked(keeping(world, server), world)
    held = keys.read_keys(world.objects["Secret", HEAD])
    assert looked(keeping(world, server), world)[HEAD] == held


def authorize(world: World, found: dict[str, Any], *secrets: str) -> None:
    """The authorized keys as brokers have them, with the holders of these Secrets."""
    holders = {CLIENT: "client app", HEAD: "head east-head", names.MEDIATOR_KEYS: "mediator mediator"}
    lines = "".join(f"{found[secret].public} {holders[secret]}\n" for secret in secrets)
    metadata = {"name": names.AUTHORIZED_KEYS, "namespace": "ns"}
    world.objects["ConfigMap", names.AUTHORIZED_KEYS] = {
        "kind": "ConfigMap", "metadata": metadata, "data": {names.AUTHORIZED_FILE: lines},
    }  # fmt: skip


@pytest.mark.parametrize("secret", [CLIENT, HEAD])
def test_the_old_key_of_a_deleted_secret_stays_accepted_and_is_told_of_once(world: World, secret: str):
    one = keeping(world, Server(world))
    before = looked(one, world)
    authorize(world, before, CLIENT, HEAD)
    assert one.replaced == []
    del world.objects["Secret", secret]
    after = looked(one, world)[secret]
    assert after.public != before[secret].public
    assert after.publics == (after.public, before[secret].public)
    [(owner, reason, message)] = one.replaced
    assert (owner["kind"], secret in message) == ("BrokerFleet" if secret == CLIENT else "BrokerCluster", True)
    assert reason == "SecretDeleted"
    assert looked(one, world)[secret] == after
    assert one.replaced == []


def test_the_old_key_of_a_client_is_removed_after_the_overlap(world: World):
    one = keeping(world, Server(world))
    authorize(world, looked(one, world), CLIENT)
    del world.objects["Secret", CLIENT]
    looked(one, world)
    secret = world.objects["Secret", CLIENT]
    since = unix_seconds(secret["metadata"]["annotations"][rotation.STEP_AT])

    def patch_at(age: float) -> Any:
        now = rfc3339(since + age)
        return rotation.rotation_patch(secret, "", in_use=None, make=keys.make_key_pair, time=now)

    assert patch_at(rotation.CLIENT_OVERLAP_SECONDS - 1) is None
    assert patch_at(rotation.CLIENT_OVERLAP_SECONDS + 1)["data"] == {keys.OLD_PUBLIC: None}


def test_a_key_whose_secret_cannot_be_made_again_stays_known(world: World):
    server = Server(world)
    one = keeping(world, server)
    before = looked(one, world)
    authorize(world, before, CLIENT)
    del world.objects["Secret", CLIENT]
    server.refused[CLIENT] = ApiError(403, "a quota")
    assert CLIENT not in looked(one, world)
    assert one.remembered[CLIENT] == (before[CLIENT].public,)
    assert one.replaced == []
