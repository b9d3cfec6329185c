"""Text from outside as it is shown: no character of it moves a cursor, ends a line, or turns the direction of reading.

Clients choose the names of subscribers and publishers freely, and reasons and errors quote them. All text for people
(on terminals, in logs, events and pages) passes through here. Data for programs is not changed.
"""

from __future__ import annotations

import html


def printable(text: object, keep: str = "") -> str:
    """The text with each unprintable character as an escape of Python: ESC as `\\x1b`, U+202E as `\\u202e`.

    `keep`: characters that the caller has put there itself, such as the line ends of a block. Done twice it changes
    nothing more.
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() or each in keep else _escape(each) for each in shown)


def printable_lines(text: object) -> str:
    """A block of lines: all but the line ends is made printable."""
    return printable(text, keep="\n")


def printable_cell(text: object) -> str:
    """One cell of a table whose columns are two spaces apart: it cannot look like several cells either."""
    return printable(text).replace("  ", " \\x20")


def html_text(text: object) -> str:
    """Text for an HTML page, in an element or in an attribute."""
    return html.escape(printable_lines(text), quote=True)


def _escape(character: str) -> str:
    # Of a lone surrogate, too, which no encoding of a terminal takes.
    return character.encode("unicode_escape").decode("ascii")


def is_told_again(times: int) -> bool:
    """Whether what has now happened this often is said, with the number: the first, tenth, hundredth time and so on."""
    return str(times).rstrip("0") == "1"
