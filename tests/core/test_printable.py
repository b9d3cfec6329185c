"""What is shown of text from outside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.printable import html_text, is_told_again, printable, printable_cell, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("desk-7", "desk-7"),
        ("Zürich/東京", "Zürich/東京"),
        ("a b", "a b"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\u202eabc\u2066\u200b", "\\u202eabc\\u2066\\u200b"),
        ("\x9b31m\x7f\x85\u2028", "\\x9b31m\\x7f\\x85\\u2028"),
        ("\ud800", "\\ud800"),
        (b"\x1b", "b'\\x1b'"),
        (None, "None"),
    ],
)
def test_what_is_not_printable_is_an_escape(text: object, shown: str):
    assert printable(text) == shown


def test_a_block_keeps_its_lines_and_a_cell_is_one():
    assert printable_lines("a\n\x1bb") == "a\n\\x1bb"
    assert printable_cell("x  moved   e-1\n") == "x \\x20moved \\x20 e-1\\n"


def test_a_page_has_neither_markup_nor_controls():
    assert html_text("<b title='x'>\u202e&\x1b") == "&lt;b title=&#x27;x&#x27;&gt;\\u202e&amp;\\x1b"


@given(st.text(st.characters()))
def test_any_text_can_be_shown(text: str):
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    shown.encode("utf-8")
    cell = printable_cell(text)
    assert "  " not in cell
    assert printable_cell(cell) == cell


def test_what_repeats_is_told_ever_more_rarely():
    assert [times for times in range(20_001) if is_told_again(times)] == [1, 10, 100, 1000, 10_000]
