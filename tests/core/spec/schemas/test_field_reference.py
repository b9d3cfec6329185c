"""The fields of the kinds in words, and the page that lists them."""

from pathlib import Path

from plimsoll.core.spec import KINDS
from plimsoll.core.spec.schemas.field_reference import FieldReference, field_references, field_table

PAGE = Path(__file__).parents[4] / "docs" / "resources.md"


def test_lines_tell_type_default_and_bounds():
    lines = {line.path: line for line in field_references(KINDS["BrokerCluster"])}
    assert lines["spec.edges[].replicas"] == FieldReference(
        "spec.edges[].replicas", "integer", "", "at least 0, at most 1000",
        "Number of edges, called NAME-0, NAME-1, ...; absent: a single edge called NAME.", required=False,
    )  # fmt: skip
    assert lines["spec.head.profile"].required
    assert lines["spec.head.profile"].bounds == "names a HardwareProfile"
    assert lines["spec.neighbors[]"].type == "list of blocks"
    fleet = {line.path: line for line in field_references(KINDS["BrokerFleet"])}
    assert fleet["spec.defaults.subscribers.queueSize"].default == "1Mi"
    assert fleet["spec.defaults.subscribers.blockFor"].bounds == "more than 0 s"
    assert fleet["spec.security.plain"].default == "false"
    assert fleet["spec.security.clients[].roles[]"].default == "Publish, Subscribe, Group, Read"


def test_pages_leave_the_fields_of_kubernetes_to_kubernetes():
    kind = KINDS["HardwareProfile"]
    parts = {line.path for line in field_references(kind)} - {line.path for line in field_references(kind, brief=True)}
    assert "spec.affinity.podAffinity" in parts
    assert {path.split(".")[1] for path in parts} == {"affinity"}


def test_every_field_says_what_it_is():
    for kind in KINDS.values():
        for line in field_references(kind):
            assert line.text.endswith("."), line.path


def test_the_page_lists_the_fields_as_they_are():
    page = PAGE.read_text()
    for kind in KINDS.values():
        assert field_table(kind) in page, f"docs/resources.md is not what `make crds` makes of {kind.name}"
