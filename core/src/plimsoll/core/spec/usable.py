"""From the stored objects of a namespace to the largest consistent fleet: a fault concerns the object that has it.

An object with a fault counts as it was when it was last accepted, or not at all if it never was. Of several objects
that contradict each other, one that has changed has the fault, else a new one: what runs goes on as it is. Links to a
cluster that cannot be used are left out, and a profile that was deleted under running brokers keeps its values.

Pure: `before` is what `UsableFleet.used` was last time; the caller stores it. A user's files on one machine are parsed
by `parser.parse` instead, which refuses all of them for one fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from plimsoll.core.spec import head_tree
from plimsoll.core.spec.brokers import declared_brokers, edge_groups, group_members, head_name, is_broker_name
from plimsoll.core.spec.kinds import KINDS, AnySpec
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.problems import Path, ResourceProblem, SourceDocument
from plimsoll.core.spec.resources import Resource, Resources
from plimsoll.core.spec.validation import consistency
from plimsoll.core.spec.validation.channels import check_channels
from plimsoll.core.spec.validation.datasets import moved_datasets

Key = tuple[str, str]
"""Kind and name."""
Content = Mapping[str, Any]
"""An object as stored: `kind`, `metadata` with `name`, `uid` and `generation`, and `spec`."""
Found = Resource[Any]
INVALID, DEPENDS, NO_CLUSTER, SECOND_FLEET = "InvalidSpec", "DependsOnFault", "NoCluster", "SecondFleet"
FLEET, CLUSTER, EDGE, PROFILE = "BrokerFleet", "BrokerCluster", "EdgeBroker", "HardwareProfile"
FEED, CHANNEL = "Feed", "Channel"
FurtherChecks = Callable[[Resources], Iterable[ResourceProblem]]
"""Checks of objects by themselves that need more than specifications know."""

_CHANGED, _NEW, _KNOWN = range(3)
"""Which of several objects has the fault: one that was changed, else a new one, else one that is as it was accepted."""


@dataclass(frozen=True)
class SpecFault:
    """Why an object is not accepted as it is: a reason in one word, and a sentence with the remedy."""

    reason: str
    message: str


@dataclass(frozen=True)
class UsableFleet:
    """The fleet that can be served, and what is wrong with the rest.

    `resources` is None without a usable fleet. `used`: the objects that it is built of, each as last accepted.
    `faults`: of objects that are not accepted as they are now. `incomplete`: accepted objects with a part that is left
    out because another object has a fault.
    """

    resources: Resources | None
    used: Mapping[Key, Content] = field(default_factory=dict)
    faults: Mapping[Key, SpecFault] = field(default_factory=dict)
    incomplete: Mapping[Key, SpecFault] = field(default_factory=dict)

    @property
    def dropped(self) -> frozenset[Key]:
        """Objects that are not used at all. What they made before stays as it is."""
        return frozenset(key for key in self.faults if key not in self.used)


def usable_fleet(
    objects: Iterable[Content], before: Iterable[Content] = (), further: FurtherChecks = lambda _: ()
) -> UsableFleet:
    """The largest consistent fleet of these objects. `before`: what was used last; its order does not matter."""
    assembly = _Assembly(objects, before, further)
    while findings := assembly.findings():
        assembly.settle(findings)
    return assembly.result()


@dataclass(frozen=True)
class _Finding:
    """A contradiction: the problem for each object that may have the fault, the likeliest first."""

    involved: Mapping[Key, ResourceProblem]
    missing: bool = False
    """Whether it is a reference to an object that does not exist or cannot be used."""
    part: Callable[[Found], object] = lambda item: item.spec
    """The part of an object that the problem depends on: one that has changed elsewhere only has no fault."""


def key_of(content: Content) -> Key:
    """Kind and name of a stored object."""
    return str(content["kind"]), str(content["metadata"]["name"])


class _Assembly:
    """The choice among the versions of each object; every step makes it smaller, so it ends."""

    def __init__(self, objects: Iterable[Content], before: Iterable[Content], further: FurtherChecks) -> None:
        self._further = further
        self._chosen: dict[Key, Found] = {}
        self._faults: dict[Key, list[tuple[str, ResourceProblem]]] = defaultdict(list)
        self._incomplete: dict[Key, list[ResourceProblem]] = defaultdict(list)
        self._cut: dict[Key, set[str]] = defaultdict(set)
        """Links that are left out, by cluster."""
        known = {key_of(item): item for item in objects}
        self._present = frozenset(known)
        self._created = {key: str(item["metadata"].get("creationTimestamp", "")) for key, item in known.items()}
        self._accepted = dict(_accepted(known, before))
        for key in sorted(known, key=self._age):
            self._choose_first(key, known[key])
        self._choose_fleet()

    def _age(self, key: Key) -> tuple[str, Key]:
        return self._created.get(key, ""), key

    def _choose_first(self, key: Key, item: Content) -> None:
        """The object as it is now; if it cannot be read, as it was accepted."""
        resources, problems = parse_each([SourceDocument(item, "")])
        if problems:
            self._faults[key] += [(INVALID, each) for each in problems]
        before = self._accepted.get(key)
        if resources and before is not None and key[0] == FLEET and (problem := _key_change(before, resources[0])):
            self._faults[key].append((INVALID, problem))
            resources = []
        if resources:
            if key[0] != EDGE or resources[0].owner is None or resources[0].owner[0] != CLUSTER:
                self._chosen[key] = resources[0]
        elif key in self._accepted:
            self._chosen[key] = self._accepted[key]

    def _choose_fleet(self) -> None:
        fleets = sorted(
            (key for key in self._chosen if key[0] == FLEET),
            key=lambda key: (key not in self._accepted, self._age(key)),
        )
        for key in fleets[1:]:
            found, remedy = f"a second fleet beside {fleets[0][1]}", "Run each fleet in a namespace of its own."
            problem = self._chosen.pop(key).problem(("metadata", "name"), found, remedy)
            self._faults[key].append((SECOND_FLEET, problem))

    # -- findings

    def findings(self) -> list[_Finding]:
        """What contradicts each other in the present choice; references are judged first."""
        resources = self._resources(ordered=True)
        if resources is None:
            return []
        own = [*consistency.check_timing(resources), *consistency.check_policies(resources)]
        own += [*consistency.check_consumer_groups(resources), *consistency.check_name_prefixes(resources)]
        own += [each for cluster in resources.clusters.values() for each in consistency.check_scale(cluster)]
        own += [*consistency.check_feeds(resources), *self._moved_datasets(resources), *self._further(resources)]
        found = [*map(_own, own), *(_own(each, missing=True) for each in consistency.check_references(resources))]
        found += [_own(each, missing=each.path[-1] == "feed") for each in check_channels(resources)]
        if found:
            return found
        found = [*self._name_findings(resources), *self._cycles(resources), *self._log_findings(resources)]
        for problem, place in consistency.check_client_names(resources):
            keys = (FLEET, resources.fleet.name), (place.owner.kind, place.owner.name)
            found.append(
                _Finding({key: _about(key, problem) for key in keys}, part=partial(_declares, name=place.name))
            )
        return found or [_own(each) for each in consistency.check_listeners(resources)]

    def _moved_datasets(self, resources: Resources) -> Iterator[ResourceProblem]:
        """Another place for what feeds and channels have been accepted with, as long as they are there."""
        before = self._accepted.get((FLEET, resources.fleet.name))
        if before is not None:
            feeds = [item.spec for (kind, _), item in self._accepted.items() if kind == FEED]
            has_channels = any(kind == CHANNEL for kind, _ in self._accepted)
            yield from moved_datasets(before.spec.datasets, resources.fleet, feeds, has_channels=has_channels)

    def _name_findings(self, resources: Resources) -> Iterator[_Finding]:
        """The same name for several brokers; the newest object has the fault."""
        owners: dict[str, list[Key]] = defaultdict(list)
        for place in declared_brokers(resources):
            owners[place.name].append((place.owner.kind, place.owner.name))
        problems = list(consistency.check_names(resources))
        by_owner = {_subject_key(each): each for each in problems}
        for place in declared_brokers(resources):
            known = [key for key in owners[place.name] if key in by_owner]
            if known and (not is_broker_name(place.name) or len(owners[place.name]) > 1):
                newest_first = sorted(set(known), key=self._age, reverse=True)
                part = partial(_declares, name=place.name)
                yield _Finding({key: by_owner[key] for key in newest_first}, part=part)

    def _cycles(self, resources: Resources) -> Iterator[_Finding]:
        for ring, owner, path in head_tree.head_tree_cycles(resources.clusters, list(resources.clusters)):
            shown = " - ".join((*ring, ring[0]))
            problem = owner.problem(
                path, f"this closes a cycle of heads: {shown}", "Remove one link: heads must form a tree."
            )
            yield _own(problem)

    def _log_findings(self, resources: Resources) -> Iterator[_Finding]:
        """A log that does not fit its head; cluster, profile or fleet may have the fault."""
        for cluster in resources.clusters.values():
            keys = (CLUSTER, cluster.name), (PROFILE, cluster.spec.head.profile), (FLEET, resources.fleet.name)
            for problem in consistency.check_log(resources, cluster):
                yield _Finding({key: _about(key, problem) for key in keys}, part=_log_part)

    # -- decisions

    def settle(self, findings: Iterable[_Finding]) -> None:
        """Decide which object has the fault of each finding; then use another version of each of these."""
        demoted: dict[Key, _Finding] = {}
        cuts: list[tuple[Key, str]] = []
        for finding in findings:
            key = self._blamed(finding)
            if key not in demoted and demoted.keys() & finding.involved.keys():
                continue  # another version of that object may be without this fault
            link = self._link_to_cut(key, finding)
            self._note(key, finding, link)
            if link:
                cuts.append((key, link))
            else:
                demoted.setdefault(key, finding)
        for key, finding in demoted.items():
            self._demote(key, finding)
        for key, link in cuts:
            self._cut[key].add(link)

    def _blamed(self, finding: _Finding) -> Key:
        return min(finding.involved, key=lambda key: self._rank(key, finding.part))

    def _rank(self, key: Key, part: Callable[[Found], object]) -> int:
        """What was changed has the fault before what is new, and that before what is as it was accepted."""
        accepted = self._accepted.get(key)
        if accepted is None:
            return _NEW
        return _KNOWN if part(self._chosen[key]) == part(accepted) else _CHANGED

    def _target(self, key: Key, finding: _Finding) -> Key:
        """The object that a reference names; empty strings if the finding is of another sort."""
        path, spec = finding.involved[key].path, self._chosen[key].spec
        if not finding.missing:
            return "", ""
        if path[-1] == "profile":
            return PROFILE, str(_value_at(spec, path[1:]))
        if path[-1] == "feed":
            return FEED, str(_value_at(spec, path[1:]))
        if path[1] == "neighbors":
            return CLUSTER, str(self._kept_neighbors(key)[int(path[2])].name)
        return CLUSTER, str(spec.cluster_ref.name)

    def _link_to_cut(self, key: Key, finding: _Finding) -> str:
        """The neighbour to go on without: it has a fault of its own, or it was deleted while this cluster ran."""
        path = finding.involved[key].path
        if key[0] != CLUSTER or path[1:2] != ("neighbors",):
            return ""
        name = self._kept_neighbors(key)[int(path[2])].name
        blocked = (CLUSTER, name) in self._present and (CLUSTER, name) not in self._chosen
        return name if blocked or self._rank(key, _placement) == _KNOWN else ""

    def _note(self, key: Key, finding: _Finding, link: str) -> None:
        """Note the fault, or, where only the object that is named has one, what is left out for it."""
        problem, target = finding.involved[key], self._target(key, finding)
        if target not in self._present or target in self._chosen:
            reason = NO_CLUSTER if key[0] == EDGE and target[0] == CLUSTER else INVALID
            self._faults[key].append((reason, problem))
            return
        found, remedy = f"{target[0]}/{target[1]} has a fault of its own", "Correct that object; its status says how."
        if link:
            found += ", so this link is left out until then"
            self._incomplete[key].append(replace(problem, found=found, remedy=remedy))
        else:
            self._faults[key].append((DEPENDS, replace(problem, found=found, remedy=remedy)))

    def _demote(self, key: Key, finding: _Finding) -> None:
        """Use what an object needs of a deleted one, or else its earlier version, or nothing of it."""
        target, before = self._target(key, finding), self._accepted.get(key)
        if before is not None and target[0] == PROFILE and target in self._accepted and target[1] in _profiles(before):
            self._chosen[target] = self._accepted[target]
        elif before is not None and before.spec != self._chosen[key].spec:
            self._chosen[key] = before
        else:
            del self._chosen[key]

    # -- values

    def _kept_neighbors(self, key: Key) -> tuple[Any, ...]:
        return tuple(each for each in self._chosen[key].spec.neighbors if each.name not in self._cut[key])

    def _resources(self, *, ordered: bool = False) -> Resources | None:
        """The choice as one fleet. `ordered`: clusters that go on as they are first, then the others by age."""
        fleet = next((item for (kind, _), item in self._chosen.items() if kind == FLEET), None)
        if fleet is None:
            return None
        groups: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
        keys = sorted(self._chosen, key=self._order) if ordered else sorted(self._chosen)
        for key in keys:
            item = self._chosen[key]
            if key[0] == CLUSTER:
                item = replace(item, spec=replace(item.spec, neighbors=self._kept_neighbors(key)))
            groups[key[0]][key[1]] = item
        return Resources(fleet, groups[CLUSTER], groups[EDGE], groups[PROFILE], {}, groups[FEED], groups[CHANNEL])

    def _order(self, key: Key) -> tuple[int, tuple[str, Key]]:
        return -self._rank(key, _placement), self._age(key)

    def result(self) -> UsableFleet:
        resources = self._resources()
        return UsableFleet(
            resources,
            {key: _content(self._chosen[key]) for key in sorted(self._chosen)} if resources is not None else {},
            {key: _summed(self._faults[key]) for key in sorted(self._faults) if self._faults[key]},
            {
                key: _summed([(DEPENDS, each) for each in self._incomplete[key]])
                for key in sorted(self._incomplete) if self._incomplete[key]
            },
        )  # fmt: skip


def _accepted(present: Mapping[Key, Content], before: Iterable[Content]) -> Iterator[tuple[Key, Found]]:
    """What was used before of objects that still exist, and profiles, which running brokers may still need."""
    for item in before:
        key, now = key_of(item), present.get(key_of(item))
        if now is None and key[0] != PROFILE:
            continue
        if now is not None and now["metadata"].get("uid") != item["metadata"].get("uid"):
            continue
        resources, _ = parse_each([SourceDocument(item, "")])
        if resources:
            yield key, resources[0]


def _key_change(before: Found, now: Found) -> ResourceProblem | None:
    """Between keys and none no change can be rolled out: brokers of the two kinds cannot talk to each other."""
    if before.spec.security.plain == now.spec.security.plain:
        return None
    remedy = "Take the change back; or delete the fleet, and create it again: its brokers start anew."
    return now.problem(("spec", "security", "plain"), "this cannot change while the fleet runs", remedy)


def _own(problem: ResourceProblem, *, missing: bool = False) -> _Finding:
    """A finding for which only the object with the problem can be at fault."""
    return _Finding({_subject_key(problem): problem}, missing)


def _subject_key(problem: ResourceProblem) -> Key:
    kind, _, name = problem.subject.partition("/")
    return kind, name


def _about(key: Key, problem: ResourceProblem) -> ResourceProblem:
    """A problem that two objects have with each other, as one of another object."""
    if _subject_key(problem) == key:
        return problem
    return replace(problem, subject="/".join(key), path=("spec",))


def _placement(item: Found) -> object:
    """The parts of a cluster that other clusters may contradict: its links and its ports."""
    return (item.spec.neighbors, item.spec.listeners) if item.kind == CLUSTER else item.spec


def _log_part(item: Found) -> object:
    """The part of a cluster, a profile or a fleet that the log of a head depends on."""
    if item.kind == FLEET:
        return item.spec.defaults.log_size, item.spec.defaults.timing.reattach_within
    return item.spec.head if item.kind == CLUSTER else item.spec


def _declares(item: Found, *, name: str) -> bool:
    """Whether an object declares a broker, or a fleet a client, of this name."""
    if item.kind == FLEET:
        return any(client.name == name for client in item.spec.security.clients)
    if item.kind == EDGE:
        return bool(item.name == name)
    members = (member for group in edge_groups(item.spec) for member in group_members(group))
    return name == head_name(item.name) or name in members


def _profiles(item: Found) -> frozenset[str]:
    """The profiles that a cluster or an edge uses."""
    if item.kind == EDGE:
        return frozenset({item.spec.profile})
    return frozenset({item.spec.head.profile, *(group.profile for group in item.spec.edges)})


def _value_at(spec: AnySpec, path: Path) -> object:
    value: Any = spec
    for part in path:
        value = value[part] if isinstance(part, int) else getattr(value, part)
    return value


def _content(item: Found) -> Content:
    """The stored object of a resource, with what tells its version."""
    content: Any = item.document.content
    kept = {key: content["metadata"][key] for key in ("name", "uid", "generation") if key in content["metadata"]}
    return {"apiVersion": content["apiVersion"], "kind": item.kind, "metadata": kept, "spec": content.get("spec") or {}}


def _summed(problems: Iterable[tuple[str, ResourceProblem]]) -> SpecFault:
    """Several problems of one object as one fault: the first reason, and at most three sentences."""
    known = list(dict.fromkeys((reason, each.sentence) for reason, each in problems))
    more = [f"and {len(known) - 3} more"] if len(known) > 3 else []
    return SpecFault(known[0][0], " ".join([sentence for _, sentence in known[:3]] + more))
