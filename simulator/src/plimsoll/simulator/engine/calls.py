"""Watching the methods of one object, where other parts refer to it and it cannot be replaced by a recording one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def call_after(part: object, name: str, then: Callable[..., None]) -> None:
    """After each call of a method of this one object, call `then` with the result and the arguments."""
    method = getattr(part, name)

    def watched(*arguments: Any) -> Any:
        result = method(*arguments)
        then(result, *arguments)
        return result

    setattr(part, name, watched)


def call_before(part: object, name: str, then: Callable[..., None]) -> None:
    """Before each call of a method of this one object, call `then` with the arguments."""
    method = getattr(part, name)

    def watched(*arguments: Any) -> Any:
        then(*arguments)
        return method(*arguments)

    setattr(part, name, watched)
