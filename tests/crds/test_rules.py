"""Each CEL rule refuses what it should, with its message, and accepts the rest: at a real API server."""

from __future__ import annotations

import copy
import secrets
from typing import Any

import pytest
from tests.crds.corpus import FULL, changed
from tests.crds.server import Server
from tests.crds.structural import nodes, schema_of

from plimsoll.core.spec import KINDS
from plimsoll.core.spec.schemas.cel_rules import BLOCK_RULES, IMMUTABLE_FIELDS, ROOT_RULES, CelRule
from plimsoll.core.spec.schemas.openapi import LONGEST_PATTERN

Object = dict[str, Any]
TOPICS: Object = {"topicAttribute": "topic"}
CLUSTER, FLEET, SESSION = FULL["BrokerCluster"], FULL["BrokerFleet"], FULL["LoadBalancingSession"]
EDGE = FULL["EdgeBroker"]


def with_spec(content: Object, **spec: Any) -> Object:
    """The object with fields of its specification set; None takes one away."""
    for field, value in spec.items():
        content = changed(content, ("spec", field), value)
    return content


def policy(**fields: Any) -> Object:
    return with_spec(CLUSTER, policy={"type": "Padres", **fields})


def overload(lower: Any, higher: Any) -> Object:
    return policy(detection={"overload": {"cpu": {"lower": lower, "higher": higher}}})


def head_thresholds(**fields: Any) -> Object:
    own = {**TOPICS, "thresholds": {"headUplink": fields}}
    return policy(type="DelaySensitive", delaySensitive=own)


def timing(**fields: Any) -> Object:
    return with_spec(FLEET, defaults={"timing": fields})


def select(**fields: Any) -> Object:
    return with_spec(SESSION, select=fields)


def renamed(content: Object, name: str) -> Object:
    return changed(content, ("metadata", "name"), name)


def with_log(**fields: Any) -> Object:
    """A cluster whose head has these fields beside its profile."""
    return with_spec(CLUSTER, head={"profile": "p", **fields})


GROUP = [{"name": "g" * 50, "profile": "p", "replicas": 10}]

CHANNEL = FULL["Channel"]
VIEW = {"name": "past", "feed": "stocks"}
BUNDLE: Object = {"bundles": ["0x00000000_0x80000000"]}
SLICES: Object = {"group": "readings"}
CREATED: list[tuple[str, Object, Object]] = [
    ("`lower` is above `higher`", overload("901m", "0.9"), overload("900m", "0.9")),
    ("`lower` is above `higher`", overload(1, "950m"), overload("950m", 1)),
    ("`lower` is above `higher`", head_thresholds(lower="960m", higher="950m"), head_thresholds(lower="960m")),
    ("`reportsValidFor` is below `interval`", policy(detection={"interval": "1h", "reportsValidFor": "1s"}),
     policy(detection={"interval": "16s"})),
    ("`reportsValidFor` is below `interval`", policy(detection={"interval": "16s", "reportsValidFor": "15999ms"}),
     policy(detection={"interval": "16s", "reportsValidFor": "16s"})),
    ("`heartbeat` is not below `deadAfter`", timing(heartbeat="1m"), timing(heartbeat="59s", deadAfter="1m")),
    ("parameters of Ring", policy(estimation={"type": "Press", "ring": {}}), policy(estimation={"ring": {}})),
    ("parameters of Press", policy(estimation={"press": {}}), policy(estimation={"type": "Press", "press": {}})),
    ("parameters of Padres", policy(type="Greedy", padres={}), policy(padres={})),
    ("parameters of Random", policy(random={}), policy(type="Random", random={"seed": 4})),
    ("parameters of LeastLoaded", policy(leastLoaded={}), policy(type="LeastLoaded", leastLoaded={})),
    ("parameters of Greedy", policy(greedy={}), policy(type="Greedy", greedy={})),
    ("parameters of Bad", policy(bad={}), policy(type="Bad", bad={})),
    ("`alpha` is above `gamma`", policy(type="Bad", bad={"alpha": "600m"}), policy(type="Bad", bad={"alpha": "500m"})),
    ("parameters of Pulsar", policy(pulsar=TOPICS), policy(type="Pulsar", pulsar=TOPICS)),
    ("Pulsar needs to know what a topic is", policy(type="Pulsar"), policy(type="Pulsar", pulsar=TOPICS)),
    ("`initial` is above `maximum`", policy(type="Pulsar", pulsar={**TOPICS, "bundles": {"initial": 9, "maximum": 8}}),
     policy(type="Pulsar", pulsar={**TOPICS, "bundles": {"initial": 8, "maximum": 8}})),
    ("`log.memory` and `logSize` both", with_log(logSize="1Mi", log={"memory": "1Mi"}),
     with_log(log={"memory": "1Mi"})),
    ("nothing to sync without a disk", with_log(log={"sync": "Interval"}),
     with_log(log={"sync": "Interval", "disk": {"size": "1Gi"}})),
    ("new rows are seen once", with_spec(CHANNEL, feeds=[{**VIEW, "rows": "New", "within": "1h"}]),
     with_spec(CHANNEL, feeds=[{**VIEW, "rows": "All", "within": "1h"}, {"name": "now", "feed": "stocks"}])),
    ("a Continuous channel has no period", with_spec(CHANNEL, mode="Continuous"),
     with_spec(CHANNEL, mode="Continuous", every=None)),
    ("a Repetitive channel needs a period", with_spec(CHANNEL, every=None), CHANNEL),
    ("there is no choice without both", with_log(confirm="Either"), with_log(confirm="Both", standby=1)),
    ("there is no choice without both", with_log(confirm="Either", standby=1),
     with_log(confirm="Either", standby=1, log={"disk": {"size": "1Gi"}})),
    ("parameters of DelaySensitive", policy(delaySensitive=TOPICS),
     policy(type="DelaySensitive", delaySensitive=TOPICS)),
    ("DelaySensitive needs to know what a topic is", policy(type="DelaySensitive"),
     policy(type="DelaySensitive", delaySensitive=TOPICS)),
    ("name the cluster as `source`, and the bundles", with_spec(SESSION, action="Split", target=None, select=None),
     with_spec(SESSION, action="Split", target=None, select=BUNDLE)),
    ("publishers move from the head of a cluster to others", with_spec(SESSION, action="MovePublishers", scope="Local"),
     with_spec(SESSION, action="MovePublishers", scope="Global")),
    ("`action: MoveSlices` and the block `slices` go together", with_spec(SESSION, action="MoveSlices", select=None),
     with_spec(SESSION, action="MoveSlices", scope="Local", target=None, select=None, slices=SLICES)),
    ("slices move between consumers of one cluster",
     with_spec(SESSION, action="MoveSlices", scope="Global", target=None, select=None, slices=SLICES),
     with_spec(SESSION, action="MoveSlices", scope="Local", target=None, select=None, slices=SLICES)),
    ("`action: Unload` and `action: Split`", with_spec(SESSION, select=BUNDLE),
     with_spec(SESSION, action="Unload", select=BUNDLE)),
    (
        "no group of that name",
        with_spec(CLUSTER, scale={"group": "f", "replicas": 2}),
        with_spec(CLUSTER, scale={"replicas": 2}),
    ),
    ("no group of that name", with_spec(CLUSTER, edges=None), with_spec(CLUSTER, edges=None, scale=None)),
    (
        "would have more than 52 characters: shorten the name of the group",
        with_spec(CLUSTER, edges=[{**GROUP[0], "replicas": 11}], scale=None),
        with_spec(CLUSTER, edges=GROUP, scale=None),
    ),
    ("write one of `count`", select(count=1, sharePercent=50), select(sharePercent=50)),
    ("write one of `count`", select(names=[]), select(names=["a/1"])),
    ("write one of `count`", select(), select(count=1)),
    ("say what to drain", with_spec(SESSION, action="Drain", source=None, select=None),
     with_spec(SESSION, action="Drain", select=None)),
    ("target is source", with_spec(SESSION, target={"name": "w-0"}), with_spec(SESSION, target=None)),
    ("select by themselves", with_spec(SESSION, action="Shuffle", target=None),
     with_spec(SESSION, action="Shuffle", target=None, select=None)),
    ("say which cluster to shuffle", with_spec(SESSION, action="Shuffle", source=None, target=None, select=None),
     with_spec(SESSION, action="Shuffle", target=None, select=None)),
    ("names its cluster as `source`", with_spec(SESSION, action="Shuffle", select=None),
     with_spec(SESSION, action="Shuffle", target=None, select=None)),
    ("names its cluster as `source`", with_spec(SESSION, action="Shuffle", scope="Global", target=None, select=None),
     with_spec(SESSION, action="Shuffle", scope="Global", select=None)),
    ("within a cluster only", with_spec(SESSION, scope="Global", handover="Replay"),
     with_spec(SESSION, handover="Replay")),
    ("in exclusions.brokers", with_spec(SESSION, exclusions={"brokers": ["v", "w-0"]}),
     with_spec(SESSION, exclusions={"brokers": ["v"]})),
    ("in exclusions.brokers", with_spec(SESSION, exclusions={"brokers": ["w-1"]}), with_spec(SESSION, exclusions={})),
    ("cannot be its own neighbor", with_spec(CLUSTER, neighbors=[{"name": "east"}]),
     with_spec(CLUSTER, neighbors=[{"name": "west"}])),
    ("with so many edges", with_spec(CLUSTER, edges=GROUP, scale={"replicas": 11}),
     with_spec(CLUSTER, edges=GROUP, scale={"replicas": 10})),
    ("NAME-head, its head", renamed(CLUSTER, "c" * 48), renamed(CLUSTER, "c" * 47)),
    ("begin with a letter", renamed(CLUSTER, "0c"), renamed(CLUSTER, "c0")),
    ("have at most 52 characters", renamed(EDGE, "e" * 53), renamed(EDGE, "e" * 52)),
    ("begin with a letter", renamed(EDGE, "0e"), renamed(EDGE, "e0")),
]  # fmt: skip
"""The message of a rule, an object that it refuses, and a similar one that it accepts."""


@pytest.mark.cluster
@pytest.mark.parametrize(("message", "refused", "accepted"), CREATED, ids=[f"{n}" for n in range(len(CREATED))])
def test_what_is_refused_when_it_is_created(server: Server, message: str, refused: Object, accepted: Object):
    no, yes = server.create(refused, dry=True), server.create(accepted, dry=True)
    assert no.code == 422
    assert message in no.message
    assert yes.accepted, yes.message


@pytest.mark.cluster
def test_bounds_say_what_they_are(server: Server):
    """Those of quantities and durations; the corpus tries each of them."""
    reply = server.create(with_spec(FULL["HardwareProfile"], memory="1Mi"), dry=True)
    assert "spec.memory: Invalid value" in reply.message
    assert "must be at least 33554432 bytes" in reply.message
    reply = server.create(with_spec(SESSION, deadline="0s"), dry=True)
    assert "spec.deadline: Invalid value" in reply.message
    assert "must be more than 0 s" in reply.message


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_spec(SESSION, deadline="5 minutes"), "spec.deadline: Invalid value: \"5 minutes\": must be a duration"),
        (with_spec(SESSION, deadline="1d"), "must be a duration such as 500us, 250ms or 1m30s"),
        (with_spec(SESSION, deadline=""), "must be a duration such as 500us, 250ms or 1m30s"),
        (timing(heartbeat="soon", deadAfter="1m"), "timing.heartbeat: Invalid value: \"soon\": must be a duration"),
        (with_spec(FULL["HardwareProfile"], memory="64MB"), "must be a number with an optional suffix, such as 250m"),
        (with_spec(FULL["HardwareProfile"], memory="64 Mi"), "must be a number with an optional suffix, such as 250m"),
        (with_spec(FULL["HardwareProfile"], cpu="-1"), "and not negative"),
        (with_spec(CLUSTER, maintenanceWindows=[{"name": "n", "schedule": "nightly", "duration": "2h"}]),
         "must be five cron fields"),
        (with_spec(FULL["HardwareProfile"], nodeSelector=[{"name": "a b", "value": "c"}]), "must be a label's key"),
    ],
)  # fmt: skip
def test_wrong_forms_are_refused_in_plain_words(server: Server, content: Object, words: str):
    reply = server.create(content, dry=True)
    assert reply.code == 422
    assert words in reply.message
    assert "should match" not in reply.message
    assert "no such" not in reply.message, "no rule fails on the wrong form itself"


@pytest.mark.parametrize("kind", KINDS)
def test_patterns_that_users_are_shown_are_short(kind: str):
    """A message of an API server quotes the whole pattern. In lists a rule per item may cost too much."""
    long = {
        path
        for path, node in nodes(schema_of(kind))
        if path.startswith("spec.") and len(node.get("pattern", "")) > LONGEST_PATTERN
    }
    clients = "spec.security.clients[]"
    quantities = ("publicationsPerSecond", "bytesPerSecond", "maxHeldBack")
    allowed = {f"{clients}.{each}" for each in quantities} if kind == "BrokerFleet" else set()
    assert long == allowed


@pytest.mark.cluster
def test_names_are_labels_as_those_of_brokers_must_be(server: Server):
    for kind in KINDS:
        reply = server.create(renamed(FULL[kind], "a.b"), dry=True)
        assert reply.code == 422
        assert "metadata.name" in reply.message


# ---------------------------------------------------------------- what may change


def stored(server: Server, content: Object) -> str:
    """An object of this kind and specification, under a name of its own."""
    name = f"{content['metadata']['name']}-{secrets.token_hex(3)}"
    reply = server.create(renamed(content, name))
    assert reply.accepted, reply.message
    return name


@pytest.mark.cluster
def test_an_edge_keeps_its_cluster(server: Server):
    name = stored(server, FULL["EdgeBroker"])
    reply = server.patch("EdgeBroker", name, {"spec": {"clusterRef": {"name": "west"}}})
    assert (reply.code, "an edge does not change its cluster" in reply.message) == (422, True)
    assert server.patch("EdgeBroker", name, {"spec": {"cordoned": True, "profile": "q"}}).accepted


def test_the_disk_of_a_log_stays_as_it_was_made(server: Server):
    spec = {**FULL["BrokerCluster"]["spec"], "head": {"profile": "p", "log": {"disk": {"size": "1Gi"}}}}
    name = stored(server, {**FULL["BrokerCluster"], "spec": spec})
    for log in ({"disk": {"size": "2Gi"}}, {"disk": None}, {"disk": {"storageClass": "fast"}}):
        reply = server.patch("BrokerCluster", name, {"spec": {"head": {"log": log}}})
        assert (reply.code, "stays as it was made" in reply.message) == (422, True), log
    assert server.patch("BrokerCluster", name, {"spec": {"head": {"log": {"sync": "Interval"}}}}).accepted


def planned(server: Server, **status: Any) -> str:
    """A session of which a plan stands in status."""
    name = stored(server, SESSION)
    found = {"phase": "Planned", "planHash": "3f2a9c", **status}
    assert server.patch("LoadBalancingSession", name, {"status": found}, sub="status").accepted
    return name


CHANGES: dict[str, Any] = {
    "scope": "Global",
    "source": None,
    "target": {"name": "e"},
    "action": "Drain",
    "select": {"count": 4},
    "candidates": [{"name": "w-1", "metric": "Output"}],
    "trigger": {"broker": "v"},
    "exclusions": {"subscribers": ["a/1", "a/2"]},
    "handover": "Drain",
}


@pytest.mark.cluster
@pytest.mark.parametrize("field", IMMUTABLE_FIELDS)
def test_what_a_plan_is_made_from_stays_while_the_plan_does(server: Server, field: str):
    name = stored(server, SESSION)
    change = {"spec": {field: CHANGES[field]}}
    if field == "action":
        change["spec"]["select"] = None
    assert server.patch("LoadBalancingSession", name, change, dry=True).accepted, "there is no plan yet"
    status = {"status": {"phase": "Planned", "planHash": "3f2a9c"}}
    assert server.patch("LoadBalancingSession", name, status, sub="status").accepted
    reply = server.patch("LoadBalancingSession", name, change)
    assert reply.code == 422
    assert f"spec.{field}: Invalid value" in reply.message
    assert "there is a plan (status.planHash)" in reply.message
    gone = {"status": {"phase": "Requested", "planHash": None}}
    assert server.patch("LoadBalancingSession", name, gone, sub="status").accepted
    assert server.patch("LoadBalancingSession", name, change).accepted, "another attempt has no plan yet"


@pytest.mark.cluster
def test_commands_are_taken_while_a_plan_stands(server: Server):
    name = planned(server)
    for change in (
        {"stop": True}, {"retries": 3}, {"deadline": "3m"}, {"ttl": "1h"}, {"mode": "Execute"},
        {"limits": {"maxInFlight": 4}}, {"approval": {"policy": "Manual"}},
    ):  # fmt: skip
        reply = server.patch("LoadBalancingSession", name, {"spec": change})
        assert reply.accepted, reply.message


@pytest.mark.cluster
def test_only_the_plan_that_stands_can_be_approved(server: Server):
    approve = {"spec": {"mode": "Execute", "approval": {"planHash": "3f2a9c"}}}
    other = {"spec": {"approval": {"planHash": "999999"}}}
    unplanned = stored(server, SESSION)
    reply = server.patch("LoadBalancingSession", unplanned, approve)
    assert (reply.code, "this is not the present plan" in reply.message) == (422, True)
    name = planned(server)
    reply = server.patch("LoadBalancingSession", name, other)
    assert (reply.code, "spec.approval.planHash" in reply.message) == (422, True)
    assert server.patch("LoadBalancingSession", name, approve).accepted
    replanned = {"status": {"planHash": "777777"}}
    assert server.patch("LoadBalancingSession", name, replanned, sub="status").accepted, "what was approved stays"
    assert server.patch("LoadBalancingSession", name, {"spec": {"stop": True}}).accepted, "and keeps nothing else back"
    assert server.patch("LoadBalancingSession", name, {"spec": {"approval": {"planHash": ""}}}).accepted


@pytest.mark.cluster
def test_an_approval_may_come_with_the_object_as_from_a_backup(server: Server):
    given = copy.deepcopy(SESSION)
    given["spec"]["approval"] = {"planHash": "3f2a9c"}
    assert server.create(given, dry=True).accepted


@pytest.mark.cluster
def test_a_fleet_keeps_its_keys_or_goes_on_without(server: Server):
    name = stored(server, FULL["BrokerFleet"])
    reply = server.patch("BrokerFleet", name, {"spec": {"security": {"plain": True}}})
    assert (reply.code, "delete the fleet, and create it again" in reply.message) == (422, True)
    assert server.patch("BrokerFleet", name, {"spec": {"security": {"plain": False}}}).accepted
    assert server.patch("BrokerFleet", name, {"spec": {"security": None}}).accepted, "keys are the default"


# ---------------------------------------------------------------- nothing is left out


def messages(rules: dict[Any, tuple[CelRule, ...]]) -> set[str]:
    return {rule.message for some in rules.values() for rule in some}


def test_every_rule_has_its_test():
    """Rules of whole objects about changes are tested above, each by itself."""
    of_changes = {rule.message for some in ROOT_RULES.values() for rule in some if "oldSelf" in rule.cel}
    untried = [
        message
        for message in messages(BLOCK_RULES) | messages(ROOT_RULES)
        if message not in of_changes and not any(words in message for words, _, _ in CREATED)
    ]
    assert untried == []
    assert of_changes == {
        "an edge does not change its cluster: delete it, and create one there",
        "brokers with keys and brokers without cannot talk to each other, so this stays as it was made: delete the"
        " fleet, and create it again",
        "the disk of a head's log stays as it was made: delete the cluster, and create it again",
        "there is a plan (status.planHash), so the fields it is made from cannot change: stop this session, or create"
        " another one",
        "this is not the present plan (status.planHash): look at that one, and approve it",
    }


def test_rules_in_the_definitions_are_these_and_bounds():
    known = messages(BLOCK_RULES) | messages(ROOT_RULES)
    found = {
        rule["message"]
        for kind in KINDS
        for _, node in nodes(schema_of(kind))
        for rule in node.get("x-kubernetes-validations", [])
    }
    assert {message for message in found - known if not message.startswith("must be ")} == set()
    assert known - found == set()
