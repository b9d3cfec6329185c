"""How the operator reaches brokers."""

from tests.operator.world import World

from plimsoll.operator import names
from plimsoll.operator.reconcile.addresses import reachable_peers


def test_by_the_address_of_the_service_under_the_key_of_the_pod():
    world = World()
    world.settle()
    for name, address in (("edge-0", "10.0.0.7"), ("edge-1", "fd00::7"), ("edge-2", "")):
        world.objects["Service", name]["spec"]["clusterIP"] = address
    world.objects["Pod", "edge-0-0"]["metadata"]["annotations"][names.KEY] = "present"
    found = reachable_peers(world.observed(), world.observed().brokers())
    peer, role = found["edge-0"]
    assert (peer.control, peer.public_key, role) == ("tcp://10.0.0.7:7401", "present", "edge")
    assert found["edge-1"][0].data == "tcp://[fd00::7]:7400"
    assert "edge-2" not in found  # it has no address yet
    world.delete(("Pod", "edge-0-0"))
    world.controllers()
    assert reachable_peers(world.observed(), {"gone": "edge"}) == {}
