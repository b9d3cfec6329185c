"""A world whose processes talk over channels, which are FIFO and arbitrarily slow.

A state is a value, and a step copies what it changes. A step is a tuple: its name, for which the world has a method
`do_NAME`, and arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

Message = tuple[Any, ...]
Pair = tuple[str, str]


@dataclass(frozen=True)
class ChannelWorld:
    """`channels`: what is on its way, by sender and receiver. `config.without`: rules that are switched off."""

    config: Any
    channels: tuple[tuple[Pair, tuple[Message, ...]], ...] = field(default=(), kw_only=True)

    def is_off(self, rule: str) -> bool:
        return rule in self.config.without

    def send(self, src: str, dst: str, *message: Any) -> Self:
        channels = dict(self.channels)
        channels[src, dst] = (*channels.get((src, dst), ()), message)
        return replace(self, channels=tuple(sorted(channels.items())))

    def taken(self, src: str, dst: str) -> tuple[Message, Self]:
        """The first message of a channel, and the world without it."""
        channels = dict(self.channels)
        first, *rest = channels.pop((src, dst))
        if rest:
            channels[src, dst] = tuple(rest)
        return first, replace(self, channels=tuple(sorted(channels.items())))

    def losing(self, is_lost: Callable[[Pair], bool]) -> Self:
        """What is on its way in these channels is lost."""
        return replace(self, channels=tuple(each for each in self.channels if not is_lost(each[0])))

    def heard(self, role: str, kind: str, *arguments: Any) -> Self:
        """The world after a process has dealt with a message, by the method `ROLE_on_KIND`."""
        after: Self = getattr(self, f"{role}_on_{kind.lower()}")(*arguments)
        return after

    def step(self, step: tuple[Any, ...]) -> Self:
        after: Self = getattr(self, f"do_{step[0]}")(*step[1:])
        return after
