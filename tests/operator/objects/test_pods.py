"""The pod of a broker: its rights, its configuration, and the changes that replace it."""

import json
from typing import Any

from tests.operator.world import FLEET, World

from plimsoll.core import config as configuration
from plimsoll.operator import names
from plimsoll.operator.objects import pods
from plimsoll.operator.objects.pods import GRACE_SECONDS, LEAVE_SECONDS
from plimsoll.operator.reconcile.addresses import cluster_edges

HEAD = "east-head"


def with_disk(log: str) -> str:
    """The fleet with this `log` of its head."""
    return FLEET.replace("head: {profile: small}", f"head: {{profile: small, {log}}}")


def template(name: str = "edge-0", text: str = FLEET) -> dict[str, Any]:
    world = World(text)
    world.settle()
    return world.objects["StatefulSet", name]["spec"]["template"]


def test_a_pod_has_no_rights_and_no_writable_disk():
    spec = template()["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert [mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")] == ["tmp"]


def test_only_the_secret_key_is_mounted():
    (secret,) = [volume["secret"] for volume in template()["spec"]["volumes"] if "secret" in volume]
    assert [each["key"] for each in secret["items"]] == [names.SECRET_FILE]
    assert secret["defaultMode"] == 0o400
    plain = template(text=FLEET.replace("    clients:\n    - {name: app}", "    plain: true"))
    assert "secret" not in str(plain["spec"])


def test_it_is_given_time_to_leave_and_leaves_a_lost_node_soon():
    spec = template()["spec"]
    assert spec["terminationGracePeriodSeconds"] == GRACE_SECONDS > LEAVE_SECONDS
    assert spec["containers"][0]["command"][-1] == str(LEAVE_SECONDS)
    assert {each["tolerationSeconds"] for each in spec["tolerations"]} == {10}
    late = FLEET.replace("spec:\n  security:", "spec:\n  pods: {lostNodeAfter: 42s}\n  security:")
    assert {each["tolerationSeconds"] for each in template(text=late)["spec"]["tolerations"]} == {42}


def test_a_profile_is_its_limits_and_its_nodes():
    text = FLEET.replace(
        "spec: {cpu: 250m, memory: 64Mi}", "spec: {cpu: 250m, memory: 64Mi, nodeSelector: [{name: disk, value: ssd}]}"
    )
    spec = template(text=text)["spec"]
    assert spec["nodeSelector"] == {"disk": "ssd"}
    resources = spec["containers"][0]["resources"]
    assert resources["limits"] == {"cpu": "250m", "memory": str(64 * 1024 * 1024)}
    assert resources["requests"] == {"cpu": "25m", "memory": str(16 * 1024 * 1024)}


def test_the_configuration_can_be_read_by_a_broker():
    world = World()
    world.settle()
    config = configuration.decode(world.objects["ConfigMap", "edge-1-config"]["data"][names.CONFIG_FILE])
    assert (config.name, config.role, config.cluster, config.fleet) == ("edge-1", "edge", "east", "stocks")
    assert (config.data, config.control, config.http) == ("tcp://*:7400", "tcp://*:7401", "tcp://0.0.0.0:7402")
    assert config.advertised == "tcp://edge-1.ns.svc:7400"
    assert config.head is not None
    assert config.head.data == "tcp://east-head.ns.svc:7400"
    key = world.objects["Pod", "east-head-0"]["metadata"]["annotations"][names.KEY]
    assert config.head.public_key == key


def test_changed_edges_do_not_restart_a_head():
    def hashes(text: str) -> tuple[str, str]:
        return tuple(template(name, text)["metadata"]["annotations"][names.RESTART_HASH] for name in ("east-head",))

    world = World()
    world.settle()
    before = world.desired().brokers["east-head"].restart_hash
    world.spec("BrokerCluster", "east", edges=[{"name": "edge", "profile": "small", "replicas": 9}])
    assert world.desired().brokers["east-head"].restart_hash == before
    world.spec("BrokerCluster", "east", head={"profile": "large"})
    assert world.desired().brokers["east-head"].restart_hash != before


def test_a_changed_policy_restarts_no_broker_and_is_sent_to_the_head():
    world = World()
    world.settle()
    before = {name: broker.restart_hash for name, broker in world.desired().brokers.items()}
    world.spec("BrokerCluster", "east", policy={"type": "Bad", "bad": {"placement": "Random"}})
    desired = world.desired()
    assert {name: broker.restart_hash for name, broker in desired.brokers.items()} == before
    assert json.loads(cluster_edges(desired, world.observed(), ())["east-head"].policy or "")["type"] == "Bad"


def test_a_restart_names_the_settings_that_have_changed():
    def fields(text: str = FLEET) -> str:
        found = World(text)
        found.settle()
        annotations: dict[str, str] = found.objects["Pod", "edge-0-0"]["metadata"]["annotations"]
        return annotations[names.RESTART_FIELDS]

    before = fields()
    assert pods.changed_fields(before, "") == ()
    assert "key" in pods.changed_fields(before, fields())
    changed = FLEET.replace("spec:\n  security:", "spec:\n  pods: {image: other/broker:2}\n  security:", 1)
    assert set(pods.changed_fields(before, fields(changed))) == {"image", "key"}
    quicker = FLEET.replace("spec:\n  security:", "spec:\n  defaults: {timing: {heartbeat: 2s}}\n  security:", 1)
    assert set(pods.changed_fields(before, fields(quicker))) == {"key", "limits.heartbeat_seconds"}


def test_a_profile_gives_tolerations_and_a_priority_class():
    taints = "[{name: dedicated, value: brokers, effect: NoSchedule}, {name: spot}]"
    own = f"spec: {{cpu: 250m, memory: 64Mi, priorityClassName: high, tolerations: {taints}}}"
    spec = template(text=FLEET.replace("spec: {cpu: 250m, memory: 64Mi}", own))["spec"]
    assert spec["priorityClassName"] == "high"
    assert spec["tolerations"][2:] == [
        {"key": "dedicated", "operator": "Equal", "value": "brokers", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists"},
    ]
    assert "priorityClassName" not in template()["spec"]


def test_a_profile_gives_affinity_and_its_change_restarts_brokers():
    own = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}"
    found = template(text=FLEET.replace("spec: {cpu: 250m, memory: 64Mi}", f"spec: {{cpu: 250m, memory: 64Mi, {own}}}"))
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
    assert found["spec"]["affinity"] == {"podAntiAffinity": required}
    before, after = (each["metadata"]["annotations"] for each in (template(), found))
    assert before[names.RESTART_HASH] != after[names.RESTART_HASH]
    assert "affinity" in pods.changed_fields(before[names.RESTART_FIELDS], after[names.RESTART_FIELDS])
    assert "affinity" not in template()["spec"]


def test_a_head_with_a_disk_has_a_claim_of_its_own_that_stays():
    disk = "log: {disk: {size: 1Gi, storageClass: fast}}"
    text = with_disk(disk)
    world = World(text)
    world.settle()
    head = world.objects["StatefulSet", HEAD]["spec"]
    (claim,) = head["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == pods.LOG_VOLUME
    assert claim["spec"]["storageClassName"] == "fast"
    assert int(claim["spec"]["resources"]["requests"]["storage"]) == (1 << 30) * 5 // 4 + pods.CLAIM_EXTRA_BYTES
    assert head["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    (container,) = head["template"]["spec"]["containers"]
    assert {"name": pods.LOG_VOLUME, "mountPath": names.LOG_FOLDER} in container["volumeMounts"]
    config = configuration.decode(world.objects["ConfigMap", names.config_of(HEAD)]["data"][names.CONFIG_FILE])
    assert config.disk_log is not None
    assert config.disk_log.directory == f"{names.LOG_FOLDER}/{HEAD}"
    assert (config.disk_log.size_bytes, config.disk_log.sync) == (1 << 30, "Always")
    edges = [item for (kind, name), item in world.objects.items() if kind == "StatefulSet" and name != HEAD]
    assert edges
    assert not any("volumeClaimTemplates" in item["spec"] for item in edges)


def test_the_claim_goes_with_its_cluster_if_asked_and_has_the_default_class():
    world = World(with_disk("log: {disk: {size: 1Gi, retain: false}, sync: Interval}"))
    world.settle()
    head = world.objects["StatefulSet", HEAD]["spec"]
    assert head["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
    assert "storageClassName" not in head["volumeClaimTemplates"][0]["spec"]


def test_a_head_without_a_disk_has_no_claim():
    world = World(FLEET)
    world.settle()
    assert "volumeClaimTemplates" not in world.objects["StatefulSet", HEAD]["spec"]


def test_a_head_with_a_standby_has_two_pods_apart_of_which_each_waits_to_be_told_what_it_is():
    world = World(with_disk("standby: 1, log: {disk: {size: 1Gi}}"))
    world.settle()
    found = world.objects["StatefulSet", HEAD]["spec"]
    assert (found["replicas"], len(found["volumeClaimTemplates"])) == (2, 1)
    (apart,) = found["template"]["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert apart["podAffinityTerm"]["labelSelector"] == {"matchLabels": {names.BROKER: HEAD}}
    config = configuration.decode(world.objects["ConfigMap", f"{HEAD}-config"]["data"][names.CONFIG_FILE])
    assert config.standby is not None
    assert (config.standby.waits, config.standby.term, config.standby.follows) == (True, 0, False)
    assert config.standby.head.data == f"tcp://{HEAD}.ns.svc:{names.DATA_PORT}"
    assert config.standby.control.endswith(f":{names.PAIR_PORT}")


def test_setting_and_removing_a_standby_changes_nothing_that_the_first_pod_is_started_with():
    plain, pair = (World(text) for text in (FLEET, with_disk("standby: 1")))
    for world in (plain, pair):
        world.settle()
    before, after = (world.objects["StatefulSet", HEAD]["spec"]["template"] for world in (plain, pair))
    for annotation in (names.RESTART_HASH, names.RESTART_FIELDS):
        assert before["metadata"]["annotations"][annotation] == after["metadata"]["annotations"][annotation]
    changed = {name for name in after["spec"] if before["spec"].get(name) != after["spec"][name]}
    assert changed == {"affinity"}, "of the second pod, which is to be on another node than the first"


def test_what_has_to_have_a_publication_changes_nothing_that_pods_are_started_with():
    log = "log: {disk: {size: 1Gi}}"
    both, either = (World(with_disk(f"standby: 1, confirm: {confirm}, {log}")) for confirm in ("Both", "Either"))
    for world in (both, either):
        world.settle()
    before, after = (world.objects["StatefulSet", HEAD]["spec"]["template"] for world in (both, either))
    annotation = names.RESTART_HASH
    assert before["metadata"]["annotations"][annotation] == after["metadata"]["annotations"][annotation]
    assert before["spec"] == after["spec"]
    files = [world.objects["ConfigMap", f"{HEAD}-config"]["data"][names.CONFIG_FILE] for world in (both, either)]
    read = [configuration.decode(file).disk_log for file in files]
    assert [log is not None and log.may_lag for log in read] == [False, True]


def test_a_head_that_is_not_ready_is_told_how_far_its_log_is_known_to_be_safe():
    def known() -> tuple[int, int]:
        world.settle()
        disk = configuration.decode(world.objects["ConfigMap", f"{HEAD}-config"]["data"][names.CONFIG_FILE]).disk_log
        assert disk is not None
        return disk.known_epoch, disk.known_position

    world = World(with_disk("log: {disk: {size: 1Gi}}"))
    assert known() == (0, 0)
    before = world.objects["StatefulSet", HEAD]["spec"]["template"]
    cluster = world.objects["BrokerCluster", "east"]
    cluster["status"] = {**cluster.get("status", {}), "head": {"logEpoch": 7, "logPosition": 90}}
    assert world.look() == [], "nothing is written while it serves"
    for condition in world.objects["Pod", f"{HEAD}-0"]["status"]["conditions"]:
        condition["status"] = "False"
    assert known() == (7, 90)
    assert world.objects["StatefulSet", HEAD]["spec"]["template"] == before
