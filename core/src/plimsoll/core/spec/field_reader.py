"""From a loaded mapping to a frozen value of its kind, with every fault on the way located.

The reader continues after a fault, so that one run shows them all; a value with a fault is `UNREADABLE` and dropped.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from plimsoll.core.spec.field_info import LABEL, DescribedField, FieldInfo, camel_case, described_fields
from plimsoll.core.spec.problems import Path, ResourceProblem, SourceDocument, suggestion
from plimsoll.core.spec.quantities import Duration, Quantity

AMOUNT_MAX_LENGTH = 32
"""Maximum characters of a quantity or a duration."""


class UnreadableValue:
    """Stands for a value that could not be read."""


UNREADABLE: Final = UnreadableValue()


class FieldReader:
    """Reads one document; collects problems. What is read has the type that the field names, or is `UNREADABLE`."""

    def __init__(self, document: SourceDocument, subject: str) -> None:
        self.document = document
        self.subject = subject
        self.problems: list[ResourceProblem] = []

    def fault(self, path: Path, found: str, remedy: str) -> UnreadableValue:
        """Record a problem at a path."""
        line = self.document.line_of(path)
        self.problems.append(ResourceProblem(self.document.file, line, self.subject, path, found, remedy))
        return UNREADABLE

    def struct(self, kind: type, value: object, path: Path) -> Any:
        """Read a mapping as a dataclass of described fields."""
        if not isinstance(value, Mapping):
            return self.fault(path, f"{_shown(value)} where a block of fields belongs", f"Write {_keys(kind)}.")
        known = {item.key: item for item in described_fields(kind)}
        for key in value:
            if key not in known:
                shown = key if isinstance(key, str) else repr(key)
                remedy = suggestion(shown, list(known), "field") if known else "Remove it: this block has no fields."
                self.fault((*path, shown), "this field is unknown", remedy)
        read: dict[str, Any] = {}
        for item in known.values():
            found = value.get(item.key)
            if found is not None:
                read[item.name] = self.value(item.hint, item.about, found, (*path, item.key))
            elif item.required:
                read[item.name] = self._missing(item, (*path, item.key))
        return UNREADABLE if any(part is UNREADABLE for part in read.values()) else kind(**read)

    def value(self, hint: object, about: FieldInfo, value: object, path: Path) -> Any:
        """Read a value as the hinted type, and check it against the field's metadata."""
        origin = typing.get_origin(hint)
        if origin in (types.UnionType, typing.Union):
            return self.value(typing.get_args(hint)[0], about, value, path)
        if origin is typing.Literal:
            return self._choice(typing.get_args(hint), value, path)
        if origin is tuple:
            return self._list(typing.get_args(hint)[0], about, value, path)
        if origin is dict:
            return self._labels(about, value, path)
        if dataclasses.is_dataclass(hint) and hint not in (Quantity, Duration):
            return self.struct(typing.cast(type, hint), value, path)
        read = _SCALARS[hint](self, value, path)
        return UNREADABLE if read is UNREADABLE or not self._within(about, read, path) else read

    def _missing(self, item: DescribedField, path: Path) -> UnreadableValue:
        about = item.about
        remedy = f"Add `{item.key}`: {about.text[:1].lower()}{about.text[1:]}"
        return self.fault(path, "this field is missing", remedy)

    def _choice(self, choices: tuple[str, ...], value: object, path: Path) -> Any:
        if value in choices:
            return value
        return self.fault(path, f"{_shown(value)} is not a choice here", suggestion(str(value), choices, "choice"))

    def _list(self, hint: Any, about: FieldInfo, value: object, path: Path) -> Any:
        if not isinstance(value, list):
            return self.fault(path, f"{_shown(value)} where a list belongs", "Write a list: each item after a `- `.")
        items = [self.value(hint, about, item, (*path, index)) for index, item in enumerate(value)]
        if any(item is UNREADABLE for item in items):
            return UNREADABLE
        if about.max_items is not None and len(items) > about.max_items:
            return self.fault(path, f"has {len(items)} items", f"Write at most {about.max_items}.")
        if about.key and not self._unique(items, about.key, path):
            return UNREADABLE
        if about.is_set and not self._different(items, path):
            return UNREADABLE
        return tuple(items)

    def _labels(self, about: FieldInfo, value: object, path: Path) -> Any:
        """Read texts by key; the field's metadata is about each text."""
        if not isinstance(value, Mapping):
            return self.fault(path, f"{_shown(value)} where KEY: VALUE belongs", "Write lines of KEY: VALUE.")
        if about.max_items is not None and len(value) > about.max_items:
            return self.fault(path, f"has {len(value)} items", f"Write at most {about.max_items}.")
        for key in value:
            if not re.fullmatch(LABEL, str(key)):
                return self.fault((*path, str(key)), "this is not a label's key", "Write one as topology/zone: value.")
        items = {str(key): self.value(str, about, item, (*path, str(key))) for key, item in value.items()}
        return UNREADABLE if any(item is UNREADABLE for item in items.values()) else items

    def _different(self, items: list[Any], path: Path) -> bool:
        """Whether no text is in the list twice; blocks may be."""
        before = len(self.problems)
        seen: set[str] = set()
        for index, item in enumerate(items):
            if isinstance(item, str) and item in seen:
                self.fault((*path, index), f'"{item}" is in this list already', "Remove it.")
            elif isinstance(item, str):
                seen.add(item)
        return len(self.problems) == before

    def _unique(self, items: list[Any], key: str, path: Path) -> bool:
        seen: dict[str, int] = {}
        before = len(self.problems)
        for index, item in enumerate(items):
            name = getattr(item, key)
            first = seen.setdefault(name, index)
            if first != index:
                self.fault(
                    (*path, index, camel_case(key)), f'"{name}" is already the name of item [{first}]', "Rename one."
                )
        return len(self.problems) == before

    def boolean(self, value: object, path: Path) -> Any:
        """Read true or false."""
        if isinstance(value, bool):
            return value
        return self.fault(path, f"{_shown(value)} is not true or false", "Write true or false, without quotes.")

    def integer(self, value: object, path: Path) -> Any:
        """Read a whole number."""
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return self.fault(path, f"{_shown(value)} is not a whole number", "Write a whole number, without quotes.")

    def string(self, value: object, path: Path) -> Any:
        """Read text."""
        if isinstance(value, str):
            return value
        return self.fault(path, f"{_shown(value)} is not text", 'Write text; in quotes if it looks like a number: "1".')

    def quantity(self, value: object, path: Path) -> Any:
        """Read a quantity; whole numbers are quantities too, floating-point numbers are not."""
        if isinstance(value, float):
            milli = math.ceil(value * 1000) if abs(value) < 1e15 else 0  # 0 for inf and NaN, too
            return self.fault(path, f"{_shown(value)} is a floating-point number", f'Write "{milli}m", or whole units.')
        if isinstance(value, bool) or not isinstance(value, int | str):
            return self.fault(path, f"{_shown(value)} is not a quantity", "Write one such as 250m, 600k or 64Mi.")
        if (known := self._short(str(value), path)) is not None:
            return known
        try:
            return Quantity.parse(str(value))
        except ValueError as error:
            return self.fault(path, f"{_shown(value)} is not readable", f"It {error}.")

    def duration(self, value: object, path: Path) -> Any:
        """Read a duration; a number without a unit is refused."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.fault(path, f"{_shown(value)} has no unit", f"Write {value}s or {value}ms.")
        if not isinstance(value, str):
            return self.fault(path, f"{_shown(value)} is not a duration", "Write one such as 500us, 250ms or 30s.")
        if (known := self._short(value, path)) is not None:
            return known
        try:
            return Duration.parse(value)
        except ValueError as error:
            return self.fault(path, f"{_shown(value)} is not readable", f"It {error}.")

    def _short(self, text: str, path: Path) -> UnreadableValue | None:
        if len(text) > AMOUNT_MAX_LENGTH:
            return self.fault(path, f"has {len(text)} characters", f"Use at most {AMOUNT_MAX_LENGTH}.")
        return self.fault(path, f"{_shown(text)} has spaces", "Remove them.") if text != text.strip() else None

    def _within(self, about: FieldInfo, value: Any, path: Path) -> bool:
        before = len(self.problems)
        if isinstance(value, str):
            if about.max_length is not None and len(value) > about.max_length:
                self.fault(path, f"has {len(value)} characters", f"Use at most {about.max_length}.")
            if about.pattern and not re.fullmatch(about.pattern, value):
                self.fault(path, f"{_shown(value)} is not of the right form", f"Write {about.form}.")
            elif about.check is not None:
                self._checked(about.check, value, path)
        elif not isinstance(value, bool):
            self._bounds(about, value, path)
        return len(self.problems) == before

    def _checked(self, check: Callable[[str], object], value: str, path: Path) -> None:
        try:
            check(value)
        except ValueError as error:
            self.fault(path, _shown(value), f"It {error}.")

    def _bounds(self, about: FieldInfo, value: Any, path: Path) -> None:
        amount = value.value if isinstance(value, Quantity | Duration) else value
        unit = "s" if isinstance(value, Duration) else f" {about.unit}" if about.unit else ""
        if about.above is not None and amount <= about.above:
            self.fault(path, f"{value} is too small", f"Write more than {about.above}{unit}.")
        if about.low is not None and amount < about.low:
            self.fault(path, f"{value} is too small", f"Write at least {about.low}{unit}.")
        if about.high is not None and amount > about.high:
            self.fault(path, f"{value} is too large", f"Write at most {about.high}{unit}.")


_SCALARS: dict[Any, Any] = {
    bool: FieldReader.boolean,
    int: FieldReader.integer,
    str: FieldReader.string,
    Quantity: FieldReader.quantity,
    Duration: FieldReader.duration,
}


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "a block of fields"
    if isinstance(value, list):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else "nothing" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _keys(kind: type) -> str:
    names = [f"`{item.key}:`" for item in described_fields(kind)]
    return " and ".join(names[:2]) + (" ..." if len(names) > 2 else "") if names else "{}"
