"""Links of an overlay node from HELLO to BYE: dialled, accepted, resumed on another connection, refused, lost.

A connection and a link are two things. The dialling side says HELLO on every new connection; the accepting side knows
the link by the peer's role, identity and name and the link's number, and takes it up where it was. A name alone proves
nothing: a peer with another key, or in another role, neither takes up nor ends a link. A link ends with BYE or REFUSE,
with a HELLO that starts over, or with silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import assert_never

from plimsoll.core.permissions import GENERATED, NO_PERMISSIONS, identity_of_name
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info, WireError
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.flusher import Flusher
from plimsoll.core.transport.hooks import NodeHooks
from plimsoll.core.transport.link import Link, LinkLimits, Peer
from plimsoll.core.transport.silent_heads import SilentHeads

HandshakeFrame = wire.Hello | wire.HelloOk | wire.Who | wire.Beat | wire.Bye | wire.Refuse

_PeerKey = tuple[str, str, str]
"""Of an accepted link: the peer's role, identity and name."""
_LinkKey = tuple[str, str, str, int]
"""The same, and the link's number."""


class Handshakes:
    """The links of one node. `links`: by the connection that carries each; `dialled`: by the name of the peer.

    `silent`: heads that lead no more, as far as dialled links tell.
    Peers that this side dials have strings as names; the addresses of those that dial in are no strings.
    """

    def __init__(
        self,
        hooks: NodeHooks,
        flusher: Flusher,
        out: list[tuple[Peer, bytes]],
        *,
        info: Info,
        limits: LinkLimits,
        new_id: Callable[[], int],
    ) -> None:
        self._hooks, self._flusher, self._out = hooks, flusher, out
        self.info, self._limits, self._new_id = info, limits, new_id
        self.links: dict[Peer, Link] = {}
        self.dialled: dict[str, Link] = {}
        self._accepted: dict[_LinkKey, Link] = {}
        self._of_peer: dict[_PeerKey, Link] = {}
        self._clients: Counter[str] = Counter()
        self.silent = SilentHeads()

    # -- for the machine

    def dial(self, peer: str) -> Link:
        """A new link; it says HELLO until it is answered."""
        link = self._new_link(peer, initiator=True)
        self.dialled[peer] = self.links[peer] = link
        self.send(link, link_handshake.say_hello(link, self._hooks.now))
        return link

    def hang_up(self, peer: str, reason: str) -> bool:
        """Close a link that was dialled, in good order; returns whether there was one."""
        link = self.dialled.pop(peer, None)
        if link is None:
            return False
        if link.was_open:
            self.send_bye(link, reason)
        self._forget(link)
        return True

    def reopen(self, link: Link, reason: str) -> None:
        """Give up a dialled link whose stream cannot be read, and open another: both sides start over."""
        self.send_bye(link, reason)
        self._restart(link)
        self._hooks.on_lost(link)
        self.send(link, link_handshake.say_hello(link, self._hooks.now))

    def close(self, link: Link, reason: str) -> None:
        """End an accepted link."""
        self.send_bye(link, reason)
        self._lose(link)

    def expel(self, link: Link, text: str) -> None:
        """End the link of a peer that may no longer be here, and send it the reason."""
        self.send(link, wire.refuse_frame(link.id, "refused", text))
        self._lose(link)

    def send_bye(self, link: Link, reason: str) -> None:
        self.send(link, wire.bye_frame(link.id, reason))

    def accepted_links(self) -> list[Link]:
        """Links that others have opened to this node, open or waiting for their peer to come back."""
        return list(self._accepted.values())

    def all_links(self) -> list[Link]:
        """Those, and the ones that this side has dialled."""
        return [*self._accepted.values(), *self.dialled.values()]

    def knows(self, link: Link) -> bool:
        """Whether a link is not over."""
        return self._accepted.get(_key(link)) is link or self.dialled.get(str(link.peer)) is link

    def regrant(self, link: Link) -> bool:
        """Apply the permissions that the peer has now; returns whether they have changed."""
        granted = self._hooks.grant_of(link.peer)
        if granted is None or granted == link.grant:
            return False
        link.grant = granted
        self._hooks.on_granted(link)
        return True

    # -- frames

    def receive(self, peer: Peer, frame: HandshakeFrame) -> None:
        """Take a frame that opens, keeps up or ends a link.

        Raises:
            WireError: `misplaced`.

        """
        link = self.links.get(peer)
        match frame:
            case wire.Hello():
                self._on_hello(peer, frame)
            case wire.HelloOk():
                if link is not None and link.initiator:
                    self._on_hello_ok(link, frame)
            case wire.Who():
                if link is not None and link.initiator and not link_handshake.awaits_answer(link, self._hooks.now):
                    self.send(link, link_handshake.say_hello(link, self._hooks.now))
            case wire.Beat() | wire.Bye() | wire.Refuse():
                if link is not None and frame.link == link.id:
                    self._on_link_frame(link, frame)
                elif isinstance(frame, wire.Beat):
                    self.ask_who(peer)
            case _:
                assert_never(frame)

    def ask_who(self, peer: Peer) -> None:
        """Ask a peer on an unknown link for a HELLO. A dialling side does not ask: its own HELLO is on its way."""
        if not isinstance(peer, str):
            self._out.append((peer, wire.who_frame()))

    def resync(self, link: Link) -> None:
        """Numbers do not fit, or nothing moves: start over from what the other side has received."""
        if (frame := link_handshake.ask_resync(link, self._hooks.now)) is not None:
            self.send(link, frame)

    def _on_link_frame(self, link: Link, frame: wire.Beat | wire.Bye | wire.Refuse) -> None:
        if isinstance(frame, wire.Beat):
            link.last_heard = self._hooks.now
            if frame.kind == wire.PING:
                self.send(link, wire.pong_frame(link.id, frame.time_us))
            else:
                link.round_trip.answered(frame.time_us, self._hooks.now)
        elif isinstance(frame, wire.Refuse):
            self._hooks.counters["refused_by_peer"] += 1
            self._hooks.on_refused(link, frame.code, frame.text)
        elif link.initiator:
            link_handshake.begin_anew(link, self._hooks.now)
            self.silent.left(link, self._hooks.now)
            self._hooks.on_lost(link)
        else:
            self._lose(link)

    # -- accepting

    def _on_hello(self, peer: Peer, hello: wire.Hello) -> None:
        if isinstance(peer, str):
            raise WireError("misplaced", "HELLO is said by the side that dials")
        proven = self._hooks.identity_of(peer)
        identity = proven or identity_of_name(hello.info.name)
        key = (hello.info.role, identity, hello.info.name, hello.link)
        is_full = key[:3] not in self._of_peer and self._clients[identity] >= self._limits.max_connections
        if why := self._hooks.admits(hello.info) or (is_full and _too_many(key, self._limits, self.info.name)):
            self._hooks.counters["peers_refused"] += 1
            self._out.append((peer, wire.refuse_frame(hello.link, "refused", why)))
            return
        link = self._accepted.get(key)
        if link is None and hello.known:
            # The peer expects a state that is gone here; with `lost` it starts a new link, and its machine learns it.
            self._out.append((peer, wire.hello_ok_frame(hello.link, 0, True, self.info)))
            return
        fresh = link is None
        if link is not None and not link_handshake.may_repeat(link, hello.received, self._hooks.now):
            # The peer repeats its HELLO every heartbeat until it is answered, so nothing is lost by this.
            self._hooks.counters["hellos_ignored"] += 1
            return
        if link is None:
            self._end_older(key[:3])
            if hello.info.role == "client":
                self._clients[identity] += 1
            link = self._accepted[key] = self._of_peer[key[:3]] = self._new_link(peer, initiator=False)
            link.identity, link.has_key = identity, bool(proven)
        self._bind(link, peer)
        self._out += [(peer, frame) for frame in link_handshake.answer_hello(link, hello, self._hooks.now)]
        if fresh:
            link.grant = self._hooks.grant_of(peer) or NO_PERMISSIONS
            self._hooks.on_open(link)
        else:
            self.regrant(link)
            self._flusher.on_room(link)

    def _end_older(self, peer: _PeerKey) -> None:
        """A peer that starts over has lost what it had before: its older link is over."""
        if (older := self._of_peer.get(peer)) is not None:
            self._lose(older)

    def _bind(self, link: Link, peer: Peer) -> None:
        """The link is carried by this connection from now on, and by no other."""
        if self.links.get(link.peer) is link:
            del self.links[link.peer]
        other = self.links.get(peer)
        if other is not None and other is not link:
            # A connection carries one link: a peer that opens another one on it has given the first one up.
            self._lose(other)
        link.peer = peer
        self.links[peer] = link

    # -- dialling

    def _on_hello_ok(self, link: Link, answer: wire.HelloOk) -> None:
        known = link.was_open
        lost, frames = link_handshake.take_answer(link, answer, self._hooks.now)
        self._out += [(link.peer, frame) for frame in frames]
        if lost:
            self._flusher.drop(link)
            self._hooks.on_lost(link)
        elif frames:
            self.silent.opened(link, self._hooks.now)
            self._flusher.on_room(link) if known else self._hooks.on_open(link)

    # -- the end of one

    def on_dead(self, link: Link) -> None:
        """The other side has been silent for too long."""
        known = link.was_open
        if link.initiator:
            self._restart(link)
            self.send(link, link_handshake.say_hello(link, self._hooks.now))
        else:
            self._forget(link)
        if known:
            self._hooks.counters["links_lost"] += 1
            self._hooks.on_lost(link)

    def send(self, link: Link, frame: bytes) -> None:
        self._out.append((link.peer, frame))

    def _new_link(self, peer: Peer, *, initiator: bool) -> Link:
        return Link(
            peer, local=self.info, limits=self._limits, initiator=initiator, new_id=self._new_id, now=self._hooks.now
        )  # fmt: skip

    def _restart(self, link: Link) -> None:
        link_handshake.begin_anew(link, self._hooks.now)
        self._flusher.drop(link)

    def _lose(self, link: Link) -> None:
        self._forget(link)
        self._hooks.on_lost(link)

    def _forget(self, link: Link) -> None:
        link.open = False
        if self.links.get(link.peer) is link:
            del self.links[link.peer]
        if link.remote is not None:
            key = _key(link)
            if self._accepted.get(key) is link:
                del self._accepted[key], self._of_peer[key[:3]]
                if link.remote.role == "client":
                    self._clients[link.identity] -= 1
                    if not self._clients[link.identity]:
                        del self._clients[link.identity]
        self._flusher.drop(link)


def _too_many(key: _LinkKey, limits: LinkLimits, broker: str) -> str:
    """Why one more client of an identity that has its number of links may not have one; empty if it may.

    Identities of the fleet itself begin with `~`, and so does that of all clients that have neither a key nor a name.
    """
    role, identity, _, _ = key
    if role != "client" or identity.startswith(GENERATED):
        return ""
    return f"{identity} has its {limits.max_connections} connections to {broker}; one can have many subscribers"


def introduce(handshakes: Handshakes, info: Info) -> None:
    """Be known as this from now on. Those that dial in are asked to say HELLO again: their links go on."""
    handshakes.info = info
    for link in handshakes.all_links():
        link.local = info
        if link.open and not link.initiator:
            handshakes.ask_who(link.peer)


def _key(link: Link) -> _LinkKey:
    return (link.remote.role if link.remote is not None else "", link.identity, link.name, link.id)
