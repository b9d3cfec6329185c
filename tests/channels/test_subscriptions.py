"""Which parameters of a channel are in force, from pages of edges."""

from __future__ import annotations

import pytest

from plimsoll.channels.config import ChannelDefinition, ChannelParameter
from plimsoll.channels.subscriptions import SubscribedParameters, typed_value
from plimsoll.core.edge import parameters_in_force
from plimsoll.core.edge.parameters_in_force import ParametersInForce
from plimsoll.core.predicates import Subscription, parse

NEAR = ChannelDefinition(
    "near", (ChannelParameter("kind", "String"), ChannelParameter("area", "Integer")), (), "SELECT 1"
)


class Edges:
    """Edges with subscriptions, and a driver that asks them."""

    def __init__(self, *names: str) -> None:
        self.tables = {name: ParametersInForce() for name in names}
        self.epochs = dict.fromkeys(names, 7)
        self.known = SubscribedParameters()
        self.known.set_edges(names)

    def add(self, edge: str, *texts: str) -> None:
        self.tables[edge].change(parsed(texts), [])

    def remove(self, edge: str, *texts: str) -> None:
        self.tables[edge].change([], parsed(texts))

    def ask(self, *names: str) -> None:
        for name in names or tuple(self.tables):
            while self.known.take(name, self.tables[name].page(self.known.request(name, 1), self.epochs[name])):
                pass


def parsed(texts: tuple[str, ...]) -> list[Subscription]:
    return [parse(text) for text in texts]


def near(kind: str, area: object) -> str:
    return f"[channel,=,'near'],[kind,=,'{kind}'],[area,=,{area}]"


def test_equal_parameters_of_several_edges_are_one_until_the_last_is_gone():
    edges = Edges("e1", "e2")
    edges.add("e1", near("fire", 3), near("fire", 3))
    edges.add("e2", near("fire", 3), near("flood", 4))
    edges.ask()
    assert edges.known.of(NEAR).rows == {("fire", 3), ("flood", 4)}
    edges.remove("e2", near("fire", 3))
    edges.remove("e1", near("fire", 3))
    edges.ask()
    assert edges.known.of(NEAR).rows == {("fire", 3), ("flood", 4)}
    edges.remove("e1", near("fire", 3))
    edges.ask()
    assert edges.known.of(NEAR).rows == {("flood", 4)}
    assert edges.known.of(ChannelDefinition("far", NEAR.parameters, (), "")).rows == frozenset()


def test_lists_of_values_are_several_rows_and_other_constraints_do_not_matter():
    edges = Edges("e1")
    edges.add("e1", "[channel,=,'near'],[kind,in,('a','b')],[area,in,(1,2)],[severity,>,3],[user,prefix,'u']")
    edges.ask()
    assert edges.known.of(NEAR).rows == {("a", 1), ("a", 2), ("b", 1), ("b", 2)}


def test_what_is_open_or_of_another_type_is_counted_and_asks_for_nothing():
    edges = Edges("e1")
    edges.add("e1", "[channel,=,'near'],[kind,=,'fire']", "[channel,=,'near']", near("fire", "'three'"))
    kinds, areas = ",".join(f"'{each}'" for each in range(101)), ",".join(map(str, range(100)))
    edges.add("e1", f"[channel,=,'near'],[kind,in,({kinds})],[area,in,({areas})]")
    edges.ask()
    found = edges.known.of(NEAR)
    assert (found.rows, found.open, found.invalid) == (frozenset(), 2, 2)


@pytest.mark.parametrize(
    ("value", "type_", "found"),
    [("a", "String", "a"), (1, "String", None), (True, "Boolean", True), (1, "Boolean", None), (3, "Integer", 3),
     (3.0, "Integer", 3), (3.5, "Integer", None), (True, "Integer", None), (3, "Number", 3.0), ("3", "Number", None)],
)  # fmt: skip
def test_values_as_their_parameter_has_them(value: object, type_: str, found: object):
    assert typed_value(value, type_) == found  # type: ignore[arg-type]  # one of the four


def test_an_edge_that_restarts_begins_anew_and_one_that_is_gone_does_not_count():
    edges = Edges("e1", "e2")
    edges.add("e1", near("fire", 3))
    edges.add("e2", near("flood", 4))
    complete = [edges.known.is_complete]
    edges.ask()
    assert [*complete, edges.known.is_complete] == [False, True]
    edges.tables["e1"], edges.epochs["e1"] = ParametersInForce(), 8
    edges.add("e1", near("storm", 5))
    edges.ask()
    assert edges.known.of(NEAR).rows == {("storm", 5), ("flood", 4)}
    edges.known.set_edges(["e1"])
    assert edges.known.of(NEAR).rows == {("storm", 5)}


def test_a_list_that_is_still_being_read_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parameters_in_force, "PARAMETERS_PER_PAGE", 1)
    edges = Edges("e1")
    edges.add("e1", near("fire", 1), near("fire", 2))
    edges.ask()
    edges.tables["e1"], edges.epochs["e1"] = ParametersInForce(), 8
    edges.add("e1", near("fire", 2), near("fire", 3), near("fire", 4))
    table = edges.tables["e1"]
    assert edges.known.take("e1", table.page(edges.known.request("e1", 1), 8))
    assert edges.known.of(NEAR).rows == {("fire", 1), ("fire", 2)}
    edges.ask()
    assert edges.known.of(NEAR).rows == {("fire", 2), ("fire", 3), ("fire", 4)}


def test_answers_that_were_overtaken_change_nothing():
    edges = Edges("e1")
    edges.add("e1", near("fire", 1))
    edges.ask()
    edges.add("e1", near("fire", 2))
    old = edges.tables["e1"].page(edges.known.request("e1", 1), 7)
    edges.remove("e1", near("fire", 2))
    edges.ask()
    edges.known.take("e1", old)
    assert edges.known.of(NEAR).rows == {("fire", 1)}
    assert not edges.known.take("gone", old)
