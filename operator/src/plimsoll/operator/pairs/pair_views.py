"""What is known of the two processes of a head, from their pods and from what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.mediator.head_pair import ProcessView, whole
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import is_leaving, uid
from plimsoll.operator.reconcile.observed import broker_container

DOWN_SECONDS = 1.0
"""A container that does not run, by the word of its kubelet, has ended if it has not answered for so long either."""


@dataclass
class WatchedProcess:
    """One of the two. `seen`: by incarnation, the uid of the pod in which it answered."""

    pod_uid: str = ""
    is_leaving: bool = False
    is_down: bool = False
    status: Mapping[str, Any] = field(default_factory=dict)
    heard_at: float = 0.0
    silent_since: float | None = None
    seen: dict[int, str] = field(default_factory=dict)

    def look(self, pod: Object | None, now: float) -> bool:
        """Take its pod as it is now; returns whether it is another one than before, so that nothing said counts."""
        found = "" if pod is None else uid(pod)
        is_other = found != self.pod_uid
        if is_other:
            self.pod_uid, self.status, self.heard_at, self.silent_since = found, {}, now, None
        self.is_leaving = pod is not None and is_leaving(pod)
        state = {} if pod is None else broker_container(pod).get("state", {})
        self.is_down = pod is None or bool(state.keys() & {"terminated", "waiting"})
        return is_other

    def take(self, status: Mapping[str, Any], now: float) -> None:
        """Take an answer of the process in this pod."""
        self.status, self.heard_at = status, now
        if len(self.seen) > 8:  # it restarts again and again: only the last lives matter
            self.seen.pop(min(self.seen))
        self.seen[whole(status, "incarnation")] = self.pod_uid
        is_silent = bool(status.get("standby_silent", False) or status.get("head_silent", False))
        if not is_silent:
            self.silent_since = None
        elif self.silent_since is None:
            self.silent_since = now

    def view(self, now: float) -> ProcessView:
        """What the decision is made from."""
        ended = {one for one, pod in self.seen.items() if pod != self.pod_uid}
        unheard = now - self.heard_at
        if self.is_down and unheard > DOWN_SECONDS:
            ended |= self.seen.keys()
        return ProcessView(
            status=self.status,
            unheard_seconds=unheard,
            silent_seconds=0.0 if self.silent_since is None else now - self.silent_since + 1e-6,
            ended=frozenset(ended),
            is_leaving=self.is_leaving,
        )
