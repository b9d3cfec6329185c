"""Publishers of topics follow their subscribers to the head of the cluster where those are.

In Pulsar the producers of a topic connect to the broker that serves it. Here publishers connect to heads: one whose
topics no subscriber of its own cluster asks for, and all of whose subscribers are behind one neighbouring head, goes to
that head. Each such move brings it nearer to all of them, and it stops where a subscriber is local or the ways part.
"""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad


def publishers_to_follow(loads: Iterable[PublisherTopicLoad]) -> dict[str, tuple[str, ...]]:
    """By neighbouring head, the publishers that all of their subscribers are behind, by name.

    Publishers without topics stay, and so do those that no subscriber takes anything of.
    """
    rows: dict[str, list[PublisherTopicLoad]] = {}
    for load in loads:
        rows.setdefault(load.publisher, []).append(load)
    found: dict[str, list[str]] = {}
    for name in sorted(rows):
        if head := _direction(rows[name]):
            found.setdefault(head, []).append(name)
    return {head: tuple(names) for head, names in sorted(found.items())}


def _direction(rows: list[PublisherTopicLoad]) -> str:
    """The one neighbouring head that takes what a publisher publishes; empty if it is to stay."""
    if any(row.local_rate or row.topic is None for row in rows):
        return ""
    heads = {row.toward for row in rows if row.remote_rate}
    return next(iter(heads)) if len(heads) == 1 else ""
