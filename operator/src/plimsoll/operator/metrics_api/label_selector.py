"""Label selectors as the API server writes them: `a=b,c!=d,e in (f,g),h notin (i),j,!k`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

Requirement = Callable[[Mapping[str, str]], bool]

CHARACTERS_AT_MOST: Final = 4096
_KEY: Final = r"[A-Za-z0-9](?:[A-Za-z0-9./_-]*[A-Za-z0-9])?"
_VALUE: Final = r"[A-Za-z0-9._-]*"
_ABSENT: Final = re.compile(rf"!\s*({_KEY})")
_EQUAL: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_IN: Final = re.compile(rf"({_KEY})\s+(in|notin)\s+\(([^()]*)\)")
_PRESENT: Final = re.compile(_KEY)
_COMMAS: Final = re.compile(r",(?![^()]*\))")


class SelectorError(ValueError):
    """A selector cannot be read; the message says which part."""


def label_selector(text: str) -> Requirement:
    """Whether labels are selected; an empty selector selects all.

    Raises:
        SelectorError: it cannot be read.

    """
    if len(text) > CHARACTERS_AT_MOST:
        raise SelectorError(f"a label selector of {len(text)} characters; at most {CHARACTERS_AT_MOST} are read")
    wanted = [_requirement(part.strip()) for part in _COMMAS.split(text)] if text.strip() else []
    return lambda labels: all(each(labels) for each in wanted)


def _requirement(text: str) -> Requirement:
    if (found := _IN.fullmatch(text)) is not None:
        key, is_wanted = found[1], found[2] == "in"
        values = {each.strip() for each in found[3].split(",")}
        return lambda labels: (labels.get(key) in values) is is_wanted
    if (found := _EQUAL.fullmatch(text)) is not None:
        key, is_wanted, value = found[1], found[2] != "!=", found[3]
        return lambda labels: (labels.get(key) == value) is is_wanted
    if (found := _ABSENT.fullmatch(text)) is not None:
        key = found[1]
        return lambda labels: key not in labels
    if _PRESENT.fullmatch(text) is not None:
        return lambda labels: text in labels
    raise SelectorError(f"{text!r} is not a requirement of a label selector: write `group=NAME`, `group in (A,B)`")
