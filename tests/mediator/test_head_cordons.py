"""Which heads take no new publishers, and where they send them."""

from __future__ import annotations

from typing import Any

from plimsoll.core.protocol.messages import HeadAddress
from plimsoll.mediator.head_cordons import HeadCordonView, head_cordons, is_cordoned


def cluster(name: str, *, epoch: int = 5, cordoned: int = 0, ready: bool = True, **metadata: Any) -> dict[str, Any]:
    ends = {"data": f"tcp://{name}", "control": "", "publicKey": "k"}
    head = {"name": f"{name}-head", "epoch": epoch, "ready": ready, "endpoints": ends}
    spec = {"head": {"profile": "p", **({"cordonedEpoch": cordoned} if cordoned else {})}}
    return {"kind": "BrokerCluster", "metadata": {"name": name, **metadata}, "spec": spec, "status": {"head": head}}


def address(name: str) -> HeadAddress:
    return HeadAddress(f"{name}-head", f"tcp://{name}", "k")


def test_a_head_names_those_that_are_open_ready_and_stay():
    objects = [
        cluster("a", cordoned=5), cluster("b"), cluster("c", cordoned=4), cluster("d", cordoned=9),
        cluster("e", ready=False), cluster("f", deletionTimestamp="t"), {"kind": "EdgeBroker"},
    ]  # fmt: skip
    found = head_cordons(objects)
    assert found["a-head"] == HeadCordonView(5, (address("b"), address("c")))
    assert found["b-head"] == HeadCordonView(0, (address("c"),))


def test_a_head_that_is_drained_is_cordoned_as_it_is_now():
    found = head_cordons([cluster("a", epoch=7), cluster("b")], {"a-head", "b1"})
    assert found["a-head"].epoch == 7
    assert found["b-head"] == HeadCordonView()


def test_a_head_that_has_not_reported_is_not_cordoned():
    assert not is_cordoned(cluster("a", epoch=0, cordoned=3))
    assert not is_cordoned({"kind": "BrokerCluster", "metadata": {"name": "a"}, "spec": {}}, {"a-head"})
