"""A fleet in memory with a feed, two channels and a volume for what they record."""

from __future__ import annotations

from typing import Any

import yaml
from tests.operator.world import SETTINGS, World

from plimsoll.operator.names import Object
from plimsoll.operator.settings import OperatorSettings

OBJECTS = """
apiVersion: plimsoll.dev/v1alpha1
kind: Feed
metadata: {name: reports}
spec: {subscription: "[class,=,'REPORT']", commitInterval: 1s}
---
apiVersion: plimsoll.dev/v1alpha1
kind: Channel
metadata: {name: fires}
spec:
  parameters: [{name: area, type: Integer}]
  feeds: [{name: r, feed: reports}]
  query: SELECT p.area FROM parameters p JOIN r ON r.area = p.area
---
apiVersion: plimsoll.dev/v1alpha1
kind: Channel
metadata: {name: floods}
spec:
  parameters: [{name: area, type: Integer}]
  feeds: [{name: r, feed: reports}]
  tables: [{name: shelters, path: shelters.csv, format: Csv}]
  query: SELECT p.area FROM parameters p JOIN r ON r.area = p.area
"""


def dataset_world(settings: OperatorSettings = SETTINGS, **fleet: Any) -> World:
    """Settled. `fleet`: fields of the fleet's specification."""
    world = World(settings=settings)
    world.spec("BrokerFleet", "stocks", **{"datasets": {"volumeClaim": "records"}, **fleet})
    for item in yaml.safe_load_all(OBJECTS):
        world.put(item)
    settled(world)
    return world


def settled(world: World) -> None:
    """Carry out what is planned until nothing is."""
    for _ in range(20):
        steps = world.look()
        if not steps:
            return
        world.carry_out(steps)
        world.controllers()
        world.now += 5
    raise AssertionError(f"it does not settle: {steps}")


def pod_spec(world: World, name: str) -> Object:
    """The pod template's specification of a StatefulSet."""
    found: Object = world.objects["StatefulSet", name]["spec"]["template"]["spec"]
    return found


def authorized(world: World) -> list[list[str]]:
    """Role, name and grants of each authorized key."""
    text = world.objects["ConfigMap", "plimsoll-authorized-keys"]["data"]["authorized_keys"]
    return [line.split()[1:] for line in text.splitlines()]
