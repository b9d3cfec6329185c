"""A scripted fleet for recorders: publications of one origin, received from a token on, as a head's log serves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.client import errors
from plimsoll.core.protocol.wire import Scalar

START_US = 1_764_000_000_000_000
HOUR_US = 3_600_000_000


@dataclass(frozen=True)
class Publication:
    """What `FeedDataset.add` takes."""

    number: int
    attributes: Mapping[str, Scalar]
    payload: bytes = b""

    @property
    def identity(self) -> tuple[str, int, int]:
        return "p", 1, self.number

    @property
    def origin(self) -> tuple[str, int, int]:
        return "head", 1, self.number

    @property
    def sent_us(self) -> int:
        return START_US + self.number * 1000


def stock(number: int, **more: Scalar) -> Publication:
    return Publication(number, {"class": "STOCK", "price": number / 4, "volume": number, **more}, b"%d" % number)


@dataclass
class ScriptedSource:
    """A subscriber of one life: it begins behind `token`, and hands out what is published, `most` at a time."""

    published: list[Publication]
    token: tuple[str, int, int] | None = None
    most: int = 1000
    gaps: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.token = self.token or ("head", 1, len(self.published))

    @property
    def watermarks(self) -> list[Any]:
        return [self.token]

    def receive_many(self, most: int = 1000, timeout: float | None = None) -> list[Any]:
        assert self.token is not None
        items = self.published[self.token[2] : self.token[2] + min(most, self.most)]
        if not items:
            raise errors.WaitTimeoutError("nothing was delivered")
        self.token = ("head", 1, items[-1].number)
        return list(items)
