"""Which publications fit a schema, and why others do not."""

from __future__ import annotations

import pytest

from plimsoll.core.protocol.wire import Scalar
from plimsoll.feeds.schema import EXACT_INTEGER, FeedColumn, FeedSchema, MisfitError, column_type, inferred

QUOTES = FeedSchema(
    (FeedColumn("class", "String", True), FeedColumn("price", "Number"), FeedColumn("open", "Boolean"),
     FeedColumn("volume", "Integer"))
)  # fmt: skip


def test_a_row_has_every_column() -> None:
    assert QUOTES.row({"class": "STOCK", "price": 3, "volume": 5}) == {
        "class": "STOCK", "price": 3.0, "open": None, "volume": 5,
    }  # fmt: skip
    assert isinstance(QUOTES.row({"class": "a", "price": 3})["price"], float)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, "attribute 'class' is missing"),
        ({"class": 7}, "attribute 'class' is '7', not a String"),
        ({"class": "a", "price": "dear"}, "attribute 'price' is 'dear', not a Number"),
        ({"class": "a", "price": EXACT_INTEGER + 1}, "attribute 'price' is '9007199254740993', not a Number"),
        ({"class": "a", "volume": 1.0}, "attribute 'volume' is '1.0', not an Integer"),
        ({"class": "a", "volume": True}, "attribute 'volume' is 'True', not an Integer"),
        ({"class": "a", "volume": 2**63}, "attribute 'volume' does not fit 64 bits"),
        ({"class": "a", "low": 1.0}, "attribute 'low' is not in the schema"),
        ({"class": "a", "_seq": 1}, "attribute '_seq' has the name of a column that every feed has"),
    ],
)
def test_a_misfit_names_the_attribute_and_the_reason(attributes: dict[str, Scalar], reason: str) -> None:
    with pytest.raises(MisfitError) as caught:
        QUOTES.row(attributes)
    assert str(caught.value) == reason


def test_a_long_value_is_cut_in_the_reason() -> None:
    with pytest.raises(MisfitError) as caught:
        QUOTES.row({"class": "a", "volume": "x" * 10_000})
    assert len(str(caught.value)) < 150


def test_unknown_attributes_may_be_dropped_and_reserved_ones_never() -> None:
    schema = FeedSchema(QUOTES.columns, drops_unknown=True)
    assert "low" not in schema.row({"class": "a", "low": 1.0})
    with pytest.raises(MisfitError):
        schema.row({"class": "a", "_row": 1})


def test_a_schema_is_inferred_from_all_first_publications() -> None:
    found = inferred([{"a": 1, "b": "x"}, {"a": 1.5, "c": True}, {"b": 3, "_seq": 1}])
    assert found == FeedSchema((FeedColumn("a", "Number"), FeedColumn("b", "String"), FeedColumn("c", "Boolean")))
    assert [column_type(value) for value in (True, 1, 1.0, "")] == ["Boolean", "Integer", "Number", "String"]
