"""Parameters of channels on control sockets: to which ones an edge's subscriptions give values, and each change."""

from __future__ import annotations

from msgspec import Struct

from plimsoll.core.protocol.wire import U63, Text


class ListParameters(Struct, array_like=True, frozen=True, tag=160):
    """To an edge: list the parameters that have changed behind `revision`.

    `epoch`: the edge's, in which that revision was; of another epoch the edge begins with everything.
    """

    id: U63
    epoch: U63 = 0
    revision: U63 = 0


class ParameterItem(Struct, array_like=True, frozen=True):
    """The equalities of subscriptions to a channel, in canonical form, and how many subscriptions have exactly them."""

    text: Text
    subscriptions: U63


class ParameterPage(Struct, array_like=True, frozen=True, tag=161):
    """Changes up to `revision`, in their order. `whole`: nothing that an earlier page has said holds any more.

    `more`: there are others behind this revision.
    """

    id: U63
    epoch: U63
    revision: U63
    parameters: list[ParameterItem]
    whole: bool = False
    more: bool = False
