"""A World and its fleet from the objects of a running fleet: pure functions.

Specifications are copied. Load comes from a survey of the brokers, or else from statuses. A profile that emulates
nothing gets the times that its brokers have measured, since the model knows no other hardware.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec import API_VERSION
from plimsoll.core.spec.brokers import head_name
from plimsoll.core.spec.problems import suggestion
from plimsoll.mediator.fleet_resources import Object, owning_cluster
from plimsoll.mediator.world.assumed_traffic import assumed_traffic, measured_edge
from plimsoll.mediator.world.measured_times import with_measured_times
from plimsoll.mediator.world.surveyed_traffic import WorldTraffic, surveyed_traffic
from plimsoll.mediator.world.traffic_survey import TrafficSurvey

LOOPBACKS = ("tcp://127.", "tcp://localhost:", "tcp://[::1]:")
VALUES_AT_MOST = 180_000
"""Values in a file; a reader takes 200,000 of them, resources included."""


class FleetWorldError(ValueError):
    """There is no World of this fleet now; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class FleetWorld:
    """`documents`: the World first, then its fleet. `notes`: a sentence for each thing measured or assumed."""

    documents: list[Object]
    notes: list[str]


def fleet_world(
    objects: Iterable[Object], survey: TrafficSurvey | None, *, at: str, duration: str = "10m", cluster: str = ""
) -> FleetWorld:
    """The World of a fleet, or of one cluster of it, as of the time `at`.

    Raises:
        FleetWorldError: there is no cluster, a broker is not ready, or there is no load to copy.

    """
    items = [item for item in objects if "deletionTimestamp" not in item["metadata"]]
    clusters = chosen_clusters(items, cluster)
    names = {str(each["metadata"]["name"]) for each in clusters}
    edges = [each for each in _of(items, "EdgeBroker") if each["spec"]["clusterRef"]["name"] in names]
    check_ready(clusters, edges)
    traffic = _traffic(clusters, edges, survey)
    notes = [f"measured: at {at}; specifications are copied as they are", *traffic.notes]
    if cluster and len(_of(items, "BrokerCluster")) > 1:
        notes.append(f"assumed: {cluster} stands alone; what its neighbours do is left out")
    fleet = _fleet_documents(items, clusters, edges, notes)
    seconds = _link_time(survey, [*(each["status"]["head"] for each in clusters), *(each["status"] for each in edges)])
    clients = {"clients": survey.clients} if survey is not None and survey.clients else {}
    spec = {
        "duration": duration, "measured": _measured(clusters, edges, at),
        "links": {"betweenBrokers": seconds, "toClients": seconds} | clients,
        "publishers": traffic.publishers, "subscribers": traffic.subscribers,
    }  # fmt: skip
    if attribute := _topic_attribute(items, clusters):
        spec["topicAttribute"] = attribute
        notes.append(
            "assumed: bundles begin as the policy divides the topics, without later splits; the edge that serves most "
            "units of one owns it"
        )
    world = {
        "apiVersion": API_VERSION, "kind": "World", "metadata": {"name": cluster or _fleet_name(items)}, "spec": spec
    }  # fmt: skip
    _check_size(spec)
    if survey is not None and survey.round_trip_seconds is not None:
        trip = 1000 * survey.round_trip_seconds
        notes.append(
            f"measured: a question to a head and its answer take {trip:.1f} ms (median), on its control socket"
        )
    if clients:
        notes.append(f"measured: {clients['clients']:,} connections of clients at the edge that has most of them")
        notes.append("assumed: subscribers of every edge are spread over as many connections")
    notes.append(f"assumed: links take {seconds}, those of clients as well")
    notes.append("assumed: queues are empty at the start, and all subscribers are there at once")
    return FleetWorld([world, *fleet], notes)


def _topic_attribute(items: Sequence[Object], clusters: Sequence[Object]) -> str:
    """The attribute whose values are topics, of the first of these clusters that has bundles; empty if none has."""
    fleets = _of(items, "BrokerFleet")
    own = [each["spec"].get("policy") for each in clusters]
    for policy in (*own, *(each["spec"].get("defaults", {}).get("policy") for each in fleets)):
        if policy is not None and policy.get("type") == "Pulsar":
            return str(policy["pulsar"]["topicAttribute"])
    return ""


def chosen_clusters(items: Sequence[Object], cluster: str) -> list[Object]:
    """The clusters that the World is of."""
    found = _of(items, "BrokerCluster")
    if not found:
        raise FleetWorldError("there is no BrokerCluster: start a fleet, as with `plimsoll up -f FILE`")
    if not cluster:
        return found
    chosen = [each for each in found if each["metadata"]["name"] == cluster]
    if not chosen:
        hint = suggestion(cluster, [str(each["metadata"]["name"]) for each in found], "cluster")
        raise FleetWorldError(f'there is no BrokerCluster "{cluster}". {hint}')
    return chosen


def check_ready(clusters: Sequence[Object], edges: Sequence[Object]) -> None:
    """FleetWorldError unless every broker is ready and has reported its load."""
    for item in clusters:
        head = item.get("status", {}).get("head", {})
        _check_broker(f"head {head_name(item['metadata']['name'])}", head, item, "bc")
    for item in edges:
        _check_broker(f"edge {item['metadata']['name']}", item.get("status", {}), item, "eb")
    if not edges:
        raise FleetWorldError("the fleet has no EdgeBroker: add an edge to a BrokerCluster, and repeat the command")


def _check_broker(what: str, status: Mapping[str, Any], item: Object, short: str) -> None:
    ready = _condition(item, "Ready")
    is_ready = ready.get("status") == "True"
    is_away = bool(status.get("load")) and status.get("state") == "N/A" if short == "bc" else not is_ready
    if not status or is_away or not (status.get("load") or is_ready):
        said = ready.get("message") or "it has no status yet"
        raise FleetWorldError(f"{what} is N/A ({said}): wait until `plimsoll get {short}` shows it ready")
    if not status.get("load"):
        raise FleetWorldError(
            f"{what} has not reported its load yet: repeat the command after one telemetry.reportInterval"
        )
    fresh = _condition(item, "LoadDataFresh")
    if fresh.get("status") == "False":
        raise FleetWorldError(f"{what}: {fresh.get('message', 'its load is old')}; `plimsoll events` may say why")


def _condition(item: Object, type_: str) -> Mapping[str, Any]:
    found = item.get("status", {}).get("conditions", [])
    return next((each for each in found if each.get("type") == type_), {})


# -- load


def _traffic(clusters: Sequence[Object], edges: Sequence[Object], survey: TrafficSurvey | None) -> WorldTraffic:
    if survey is not None:
        heads = {head_name(str(each["metadata"]["name"])): str(each["metadata"]["name"]) for each in clusters}
        places = {str(each["metadata"]["name"]): str(each["spec"]["clusterRef"]["name"]) for each in edges}
        found = surveyed_traffic(survey, heads, places)
    else:
        lagging = [str(each["metadata"]["name"]) for each in edges if each["status"].get("state") == "N/A"]
        if lagging:
            raise FleetWorldError(
                f"edge {lagging[0]} is N/A: it has fallen behind its head, and what it reports is not its load; "
                "relieve it, as with `plimsoll rebalance`, and repeat the command"
            )
        rates = {
            str(each["metadata"]["name"]): float(each["status"]["head"]["load"].get("publicationsPerSecond", 0))
            for each in clusters
        }
        found = assumed_traffic(rates, [measured_edge(each) for each in edges])
    if not found.publishers:
        raise FleetWorldError("nothing is published in this fleet: repeat the command while applications publish")
    if not found.subscribers:
        raise FleetWorldError("no edge serves a subscriber: repeat the command while applications subscribe")
    return found


def _measured(clusters: Sequence[Object], edges: Sequence[Object], at: str) -> Object:
    """Loads by edge, as `plimsoll get eb` shows them: what a run of the World can be held against."""
    wanted = (
        "inputUtilizationPercent", "outputUtilizationPercent", "publicationsPerSecond", "deliveriesPerSecond",
        "matchDelayMicroseconds", "inputQueueMessages",
    )  # fmt: skip
    loads = {head_name(str(each["metadata"]["name"])): each["status"]["head"]["load"] for each in clusters}
    loads |= {str(each["metadata"]["name"]): each["status"]["load"] for each in edges}
    served = {str(each["metadata"]["name"]): int(each["status"].get("subscribers", 0)) for each in edges}
    brokers: list[Object] = [
        {"name": name, **{key: int(load[key]) for key in wanted if key in load}} for name, load in loads.items()
    ]
    for each in brokers:
        each |= {"subscribers": served[each["name"]]} if each["name"] in served else {}
    return {"at": at, "brokers": brokers}


def _link_time(survey: TrafficSurvey | None, statuses: Iterable[Mapping[str, Any]]) -> str:
    """How long a message is under way, about: half of what a question and its answer take, if that was measured."""
    if survey is not None and survey.round_trip_seconds is not None:
        return f"{round(survey.round_trip_seconds / 2 * 1e6)}us"
    ends = [str(each["endpoints"]["data"]) for each in statuses]
    return "200us" if all(each.startswith(LOOPBACKS) for each in ends) else "1ms"


def _check_size(spec: Mapping[str, Any]) -> None:
    values = sum(12 + len(each["publications"]) for each in spec["publishers"])
    values += sum(12 + len(each["subscriptions"]) for each in spec["subscribers"])
    if values > VALUES_AT_MOST:
        raise FleetWorldError(
            f"the World would have some {values:,} values, and a file has at most 200,000: name one --cluster, or let "
            "it be made up from statuses with --from-status"
        )


# -- specifications


def _of(items: Iterable[Object], kind: str) -> list[Object]:
    return sorted((each for each in items if each["kind"] == kind), key=lambda each: str(each["metadata"]["name"]))


def _fleet_name(items: Sequence[Object]) -> str:
    return next((str(each["metadata"]["name"]) for each in _of(items, "BrokerFleet")), "fleet")


def _fleet_documents(
    items: Sequence[Object], clusters: Sequence[Object], edges: Sequence[Object], notes: list[str]
) -> list[Object]:
    names = {each["metadata"]["name"] for each in clusters}
    found = [_document(each, each["spec"]) for each in _of(items, "BrokerFleet")]
    for profile in _of(items, "HardwareProfile"):
        name = str(profile["metadata"]["name"])
        used = [each["status"]["load"] for each in edges if each["spec"]["profile"] == name]
        heads = [each["status"]["head"]["load"] for each in clusters if each["spec"]["head"]["profile"] == name]
        if used or heads:
            found.append(_document(profile, with_measured_times(profile, used, heads, notes)))
    for each in clusters:
        neighbors = [one for one in each["spec"].get("neighbors", []) if one["name"] in names]
        spec = {key: value for key, value in each["spec"].items() if key != "neighbors"}
        found.append(_document(each, spec | ({"neighbors": neighbors} if neighbors else {})))
    found += (_document(each, each["spec"]) for each in edges if owning_cluster(each) is None)
    cordoned = [str(each["metadata"]["name"]) for each in edges if each["spec"].get("cordoned")]
    if cordoned:
        notes.append(f"assumed: {', '.join(cordoned)} is not cordoned: the model cordons no edge")
    return found


def _document(item: Object, spec: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": API_VERSION, "kind": item["kind"], "metadata": {"name": item["metadata"]["name"]},
        "spec": dict(spec),
    }  # fmt: skip
