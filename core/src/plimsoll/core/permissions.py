"""What a client may do over its link, and how much of it: given by the shell, which knows the key of the connection.

A grant belongs to an identity, which may have several connections, and publishers under several names; its quota is for
all of them together at one broker. Without a grant a client may do everything within the limits of the broker.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientPermissions:
    """`identity`: the owner of the quota. None as a quota: the broker's own limits hold."""

    identity: str = ""
    publishes: bool = True
    subscribes: bool = True
    publications_per_second: float | None = None
    bytes_per_second: float | None = None
    max_subscriptions: int | None = None

    @property
    def publish_refusal(self) -> str:
        return "" if self.publishes else f"{self.identity} may not publish; its roles lack publish"

    @property
    def subscribe_refusal(self) -> str:
        return "" if self.subscribes else f"{self.identity} may not subscribe; its roles lack subscribe"


ALL_PERMISSIONS = ClientPermissions()
NO_PERMISSIONS = ClientPermissions(publishes=False, subscribes=False)
NOT_PERMITTED = "role"
"""The code of a refusal for lack of permission. It is final: a repeated request is refused again."""
