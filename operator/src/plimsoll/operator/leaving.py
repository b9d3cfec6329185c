"""How edges leave: evacuated by a session, then ended, then forgotten.

The finalizer of an EdgeBroker stands for its subscribers: it goes when the pod has gone. An edge with no other edge to
go to, as in a namespace that is deleted, leaves at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.spec import head_name
from plimsoll.mediator import evacuation
from plimsoll.operator import names
from plimsoll.operator.change import Change, Delete, Evacuate, Patch, Wait
from plimsoll.operator.desired import Desired
from plimsoll.operator.emptying import Moment, emptying
from plimsoll.operator.names import Object
from plimsoll.operator.objects import is_leaving, owner, ref
from plimsoll.operator.observed import Observed, condition, is_ready, seconds, serves_nobody


def edges(observed: Observed) -> Iterator[Object]:
    """EdgeBrokers that are to go and have not been let go yet."""
    for edge in observed.kind("EdgeBroker"):
        if is_leaving(edge) and names.FINALIZER in edge["metadata"].get("finalizers", []):
            yield edge


def brokers(observed: Observed) -> frozenset[str]:
    """Their names."""
    return frozenset(str(edge["metadata"]["name"]) for edge in edges(observed))


def changes(desired: Desired, observed: Observed, moment: Moment) -> Iterator[Change]:
    """The next step of each edge that leaves."""
    for edge in edges(observed):
        yield from _next(edge, desired, observed, moment)


def _next(edge: Object, desired: Desired, observed: Observed, moment: Moment) -> Iterator[Change]:
    name = edge["metadata"]["name"]
    stateful_set, pod = observed.get("StatefulSet", name), observed.pod(name)
    if stateful_set is None and pod is None:
        finalizers = [each for each in edge["metadata"]["finalizers"] if each != names.FINALIZER]
        version = edge["metadata"]["resourceVersion"]
        patch = {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
        yield Patch(edge, patch, "it has left")
    elif stateful_set is None or is_leaving(stateful_set):
        yield Wait(ref(edge), "its pod lets the last subscribers go")
    elif not _must_be_emptied(edge, desired, observed, moment):
        yield Delete(stateful_set, "its edge is not asked for any more, and serves nobody who could go elsewhere")
    else:
        session = kept(evacuation.session(edge), observed, edge["spec"]["clusterRef"]["name"])
        found = emptying(observed, name, session["metadata"]["name"], moment)
        if found.over:
            yield Delete(stateful_set, f"its edge has been evacuated: {found.reason}")
        elif found.wanted and not is_ready(pod):
            yield Wait(ref(edge), "its subscribers are moved when it is ready, or it is taken to serve nobody")
        elif found.wanted:
            yield Evacuate(edge, named(session, found.wanted), found.reason or "its edge is deleted")
        else:
            yield Wait(ref(edge), f"session {found.name} moves its subscribers")


def kept(session: Object, observed: Observed, cluster: str) -> Object:
    """A session that stays, as what was done, when its edge has gone: it belongs to the cluster."""
    found = observed.get("BrokerCluster", cluster)
    owners = [owner(found)] if found is not None else []
    return {**session, "metadata": {**session["metadata"], "ownerReferences": owners}}


def named(session: Object, name: str) -> Object:
    """A session under another name."""
    return {**session, "metadata": {**session["metadata"], "name": name}}


def _must_be_emptied(edge: Object, desired: Desired, observed: Observed, moment: Moment) -> bool:
    """Whether there may be subscribers to move, and somewhere to go. One whose head is away keeps those it has."""
    name, cluster = edge["metadata"]["name"], edge["spec"]["clusterRef"]["name"]
    pod, head = observed.pod(name), observed.pod(head_name(cluster))
    if not evacuation.has_refuge(desired.resources, name, cluster) or serves_nobody(pod, head, moment.now):
        return False
    since = condition(pod or {}, "Ready").get("lastTransitionTime")
    return is_ready(pod) or since is None or moment.now - seconds(since) < evacuation.LONGEST_SECONDS * moment.factor
