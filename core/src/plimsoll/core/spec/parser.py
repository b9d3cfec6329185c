"""From loaded documents to `Resources`, or to all their problems.

Each document is read by itself (`FieldReader`), then all are checked together (`validation.consistency`). Faults of
single documents are reported alone, because references to a faulty object cannot be judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from plimsoll.core.spec.field_info import NAME
from plimsoll.core.spec.field_reader import UNREADABLE, FieldReader
from plimsoll.core.spec.kinds import API_VERSION, KINDS, WRITTEN_KINDS, AnySpec, BrokerFleetSpec
from plimsoll.core.spec.problems import InvalidResourcesError, Path, ResourceProblem, SourceDocument, suggestion
from plimsoll.core.spec.resources import Resource, Resources
from plimsoll.core.spec.validation import consistency

T = TypeVar("T")
WRITTEN_REMEDY = (
    "Leave this document out: bundles come with `policy: {type: Pulsar}`, and sessions split and unload them."
)
_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_METADATA = ("name", "namespace", "labels", "annotations")
# Written by an API server or the local store; accepted, so that the output of `get -o yaml` can be applied again.
_SERVER_METADATA = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "finalizers", "ownerReferences", "managedFields", "generateName", "selfLink",
)  # fmt: skip


def parse(documents: Iterable[SourceDocument]) -> Resources:
    """Read all objects of one fleet; without a fleet object, a fleet named `default` is assumed.

    Raises:
        InvalidResourcesError: with every problem found, each with file, line, path and remedy.

    """
    resources, problems = parse_each(documents)
    if problems:
        raise InvalidResourcesError(problems)
    return assemble(resources)


def parse_each(documents: Iterable[SourceDocument]) -> tuple[list[Resource[AnySpec]], list[ResourceProblem]]:
    """Read each document by itself; references are not followed."""
    resources: list[Resource[AnySpec]] = []
    problems: list[ResourceProblem] = []
    for document in flattened(documents):
        resource, found = _resource(document)
        problems.extend(found)
        if resource is not None:
            resources.append(resource)
    return resources, problems


def parse_block(kind: type[T], content: Mapping[str, Any]) -> T:
    """Read a part of a specification by itself.

    Raises:
        InvalidResourcesError: with every problem found.

    """
    reader = FieldReader(SourceDocument(content), kind.__name__)
    found = reader.struct(kind, content, ())
    if not isinstance(found, kind) or reader.problems:
        raise InvalidResourcesError(reader.problems)
    return found


def assemble(resources: Iterable[Resource[AnySpec]]) -> Resources:
    """Assemble objects into one fleet; raises `InvalidResourcesError` as `parse` does."""
    objects = [item for item in resources if not _made_by_cluster(item)]
    problems = list(consistency.check_unique(objects))
    if problems:
        raise InvalidResourcesError(problems)
    by_kind: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for item in objects:
        by_kind[item.kind][item.name] = item
    fleets = by_kind["BrokerFleet"]
    fleet = next(iter(fleets.values())) if fleets else Resource("BrokerFleet", "default", BrokerFleetSpec())
    found = Resources(
        fleet=fleet,
        clusters=by_kind["BrokerCluster"],
        edges=by_kind["EdgeBroker"],
        profiles=by_kind["HardwareProfile"],
        sessions=by_kind["LoadBalancingSession"],
        feeds=by_kind["Feed"],
        channels=by_kind["Channel"],
    )
    problems = list(consistency.check_resources(found))
    if problems:
        raise InvalidResourcesError(problems)
    return found


def _made_by_cluster(resource: Resource[AnySpec]) -> bool:
    return resource.kind == "EdgeBroker" and resource.owner is not None and resource.owner[0] == "BrokerCluster"


def flattened(documents: Iterable[SourceDocument]) -> Iterator[SourceDocument]:
    """Documents, with the items of a `List` as separate documents."""
    for document in documents:
        content = document.content
        if isinstance(content, Mapping) and content.get("kind") == "List" and isinstance(content.get("items"), list):
            for index, item in enumerate(content["items"]):
                yield SourceDocument(item, document.file, _inside(document, ("items", index)))
        elif content is not None:
            yield document


def _inside(document: SourceDocument, prefix: Path) -> Any:
    return lambda path: document.line_of((*prefix, *path))


def _resource(document: SourceDocument) -> tuple[Resource[AnySpec] | None, list[ResourceProblem]]:
    content = document.content
    reader = FieldReader(document, "")
    if not isinstance(content, Mapping):
        reader.fault((), "this document is not an object", "Write `apiVersion:`, `kind:`, `metadata:` and `spec:`.")
        return None, reader.problems
    kind = _kind(reader, content)
    metadata = _metadata(reader, content)
    if kind is None or metadata is None:
        return None, reader.problems
    reader.subject = f"{kind}/{metadata['name']}"
    for key in content:
        if key not in _TOP:
            reader.fault((str(key),), "this field is unknown", suggestion(str(key), _TOP, "field"))
    spec = reader.struct(KINDS[kind].spec, content.get("spec") or {}, ("spec",))
    if spec is UNREADABLE or reader.problems:
        return None, reader.problems
    return Resource(kind=kind, spec=spec, document=document, **metadata), []


def _kind(reader: FieldReader, content: Mapping[str, Any]) -> str | None:
    version, kind = content.get("apiVersion"), content.get("kind")
    if version != API_VERSION:
        found = "this field is missing" if version is None else f'"{version}" is not known'
        reader.fault(("apiVersion",), found, f"Write `apiVersion: {API_VERSION}`.")
    if isinstance(kind, str) and kind in WRITTEN_KINDS:
        reader.fault(("kind",), f"a {kind} is written by its fleet, not by users", WRITTEN_REMEDY)
        return None
    if not isinstance(kind, str) or kind not in KINDS:
        found = "this field is missing" if kind is None else f'"{kind}" is not a kind'
        reader.fault(("kind",), found, suggestion(str(kind), list(KINDS), "kind"))
        return None
    return kind if version == API_VERSION else None


def _yaml_type(value: bool | int | float) -> str:
    return "boolean" if isinstance(value, bool) else "number"


def _metadata(reader: FieldReader, content: Mapping[str, Any]) -> dict[str, Any] | None:
    kind, metadata = content.get("kind"), content.get("metadata")
    reader.subject = kind if isinstance(kind, str) else ""
    if not isinstance(metadata, Mapping):
        reader.fault(("metadata",), "this block is missing", "Write `metadata:` with a `name:`.")
        return None
    name = metadata.get("name")
    for key in metadata:
        if key not in _METADATA + _SERVER_METADATA:
            reader.fault(("metadata", str(key)), "this field is unknown", suggestion(str(key), _METADATA, "field"))
    if isinstance(name, bool | int | float):
        # Unquoted, YAML reads 123 as a number, and yes as true: the name may be right, and its type is not.
        reader.fault(
            ("metadata", "name"), f"{name} is a {_yaml_type(name)}, not text", f'Write it in quotes: "{name}".'
        )
        return None
    if not isinstance(name, str) or len(name) > 63 or not re.fullmatch(NAME, name):
        found = "this field is missing" if name is None else f'"{name}" is not a name'
        remedy = "Use lower-case letters, digits and '-', at most 63, with a letter or digit at both ends."
        reader.fault(("metadata", "name"), found, remedy)
        return None
    read: dict[str, Any] = {"name": name, "owner": _owner(metadata)}
    for key in ("labels", "annotations"):
        read[key] = _texts(reader, metadata.get(key), ("metadata", key))
    read["namespace"] = reader.string(metadata.get("namespace") or "", ("metadata", "namespace"))
    return None if reader.problems else read


def _texts(reader: FieldReader, value: object, path: Path) -> Any:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return reader.fault(path, "is not a block of texts", 'Write `key: "value"` lines.')
    return {str(key): reader.string(text, (*path, str(key))) for key, text in value.items()}


def _owner(metadata: Mapping[str, Any]) -> tuple[str, str] | None:
    references = metadata.get("ownerReferences")
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, Mapping) and reference.get("controller"):
            return str(reference.get("kind")), str(reference.get("name"))
    return None
