"""`python -m bench.hostile.steps`: the longest round of an edge and of a head for a list in a hand-over and for covers.

Milliseconds of processor time of the longest round, of each step:

- a list in a hand-over, at the edge that takes it: ATTACH, SUBS that replaces it, INSTALL, and ABORT of the same again;
- the same list as covering updates of an edge at a head with two neighbours, as an edge sends them, many in one round;
- the same list in the parts of an EDGE_REPORT: an edge that has lost its link to the head reports what it has.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import sys
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Literal

from bench.broker.actors import EDGE, EPOCH, CountingClient
from bench.broker.machines import head_config
from bench.hostile.__main__ import AttackedEdge
from msgspec import structs

from plimsoll.core.config import PeerBroker
from plimsoll.core.head.machine import Head
from plimsoll.core.matching import warm_up
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.cover_parts import REPORT_PART_ITEMS, split_cover
from plimsoll.core.protocol.wire import Info

SESSION = "1.1"
UPDATE_ITEMS = 16
"""Subscriptions of one covering update: what an edge reads in one part of a list of these."""
FRAME_UPDATES = 8


def narrow(count: int) -> list[str]:
    return [f"[a,=,{i}],[b,>,{i}]" for i in range(count)]


def broad(count: int) -> list[str]:
    """None of these has an equality, so that each is compared with others; the last one covers them all."""
    return [*(f"[a,>,{i}],[b{i % 50},exists]" for i in range(1, count)), "[a,exists]"]


class HandoverTargetRig(AttackedEdge):
    """The attacked edge as the target of a hand-over of the attacker."""

    def told(self, *records: msg.FromHead) -> float:
        """The longest round from a record of the head until the edge is at rest."""
        self.rounds.clear()
        for record in records:
            self.feeder.say(self.feeder.edge, record)  # type: ignore[arg-type]  # the rig is not made without an edge
        self.run_out()
        return max(self.rounds)

    def asked(self, record: msg.FromClient) -> float:
        """The longest round from a record of the attacker until the edge is at rest."""
        self.rounds.clear()
        self.attack_records = [wire.encode(record)]
        self.send_attack()
        self.run_out()
        return max(self.rounds)

    def steps(self, texts: list[str]) -> Iterator[tuple[str, float]]:
        items = [msg.SubscriptionItem(i, text) for i, text in enumerate(texts, 1)]
        member = msg.MemberItem("moved", (1, 2))
        for again in (False, True):
            self.told(msg.Prepare(SESSION, ["moved"], 600.0, False))
            attach = msg.AttachItem(2, "moved", (1, 3), 1, items, msg.Policy())
            yield "ATTACH again" if again else "ATTACH", self.asked(msg.Attach(SESSION, [attach]))
            if not again:
                moved = [msg.SubscriptionItem(item.id + len(items), f"[c,=,1],{item.text}") for item in items]
                yield "SUBS on standby", self.asked(msg.Subs(2, 2, moved, [item.id for item in items]))
            else:
                yield "INSTALL", self.told(msg.Install(SESSION, ["moved"]))
            yield "ABORT behind INSTALL" if again else "ABORT", self.told(msg.Abort(SESSION, [member]))


class CoveredHead:
    """A head with an edge and two neighbours that take what it announces. `rounds`: milliseconds of each."""

    def __init__(self) -> None:
        ids = itertools.count(1)
        peers = tuple(PeerBroker(name=f"a{n}", data=f"tcp://a{n}:1", control=f"tcp://a{n}:2") for n in range(2))
        self.head = Head(structs.replace(head_config(), neighbors=peers), EPOCH, lambda: next(ids))
        self.peers = {
            EDGE: CountingClient(EDGE, 77, []),
            "a0": CountingClient("a0", 78, []),
            "a1": CountingClient("a1", 79, []),
        }
        self.by_peer: dict[Hashable, CountingClient] = {name.encode(): client for name, client in self.peers.items()}
        self.now, self.rounds = 1.0, list[float]()
        for name, client in self.peers.items():
            self.say_hello(name, client.link)
        self.run_out()
        self.tell("a0", msg.NeighborReport(msg.Cover(1, [], []), 0))
        self.tell("a1", msg.NeighborReport(msg.Cover(1, [], []), 0))
        self.report([])

    def say_hello(self, name: str, link: int) -> None:
        role: Literal["edge", "head"] = "edge" if name == EDGE else "head"
        self.head.receive(name.encode(), [wire.hello_frame(link, 0, False, Info(name, role, EPOCH))], self.now)

    def frame(self, name: str, *records: msg.FromEdge | msg.BetweenHeads) -> bytes:
        client = self.peers[name]
        client.sent += 1
        encoded = [wire.encode(record) for record in records]
        return wire.data_frame(client.link, 0, client.sent, client.received, 1 << 30, encoded, len(encoded))

    def tell(self, name: str, *records: msg.FromEdge | msg.BetweenHeads) -> float:
        return self.receive(name, [self.frame(name, *records)])

    def receive(self, name: str, frames: list[bytes]) -> float:
        """The longest round until the head is at rest; the first takes all frames."""
        self.rounds.clear()
        self.round(lambda: self.head.receive(name.encode(), frames, self.now))
        self.run_out()
        return max(self.rounds)

    def run_out(self) -> None:
        for at in range(20_000):
            self.round(lambda: None)
            waits = getattr(self.head, "cover_turns", None)
            if at > 3 and self.head.routes.is_tidy and not (waits is not None and waits.waiting):
                return
        raise RuntimeError("the head does not come to rest")

    def round(self, arrive: Callable[[], None]) -> None:
        self.now += 0.001
        started = time.thread_time()
        arrive()
        self.head.poll(self.now)
        out = self.head.data_to_send()
        self.rounds.append((time.thread_time() - started) * 1e3)
        self.head.control_to_send(), self.head.dials_to_make()
        for peer, data in out:
            frame = wire.decode_frame(data)
            if isinstance(frame, wire.Data):
                client = self.by_peer[peer]
                client.received = frame.seq
                self.head.receive(peer, [wire.ack_frame(client.link, frame.seq, 1 << 30)], self.now)

    def updates(self, texts: list[str]) -> float:
        """The list as covering updates, all of which have arrived in one round."""
        items = [msg.CoverItem(i, text) for i, text in enumerate(texts, 1)]
        covers = [
            msg.Cover(2 + at // UPDATE_ITEMS, items[at : at + UPDATE_ITEMS], [])
            for at in range(0, len(items), UPDATE_ITEMS)
        ]
        frames = [self.frame(EDGE, *covers[at : at + FRAME_UPDATES]) for at in range(0, len(covers), FRAME_UPDATES)]
        return self.receive(EDGE, frames)

    def report_again(self, texts: list[str]) -> float:
        """The edge has lost its link, and reports on a new one."""
        self.connect_again(EDGE)
        return self.report(texts)

    def connect_again(self, name: str) -> None:
        client = self.peers[name]
        client.link, client.sent, client.received = client.link + 100, 0, 0
        self.say_hello(name, client.link)
        self.run_out()

    def neighbor_reports_again(self, texts: list[str]) -> float:
        """A neighbour has lost its link, and reports on a new one what it has reported before."""
        items = [msg.CoverItem(i, text) for i, text in enumerate(texts, 1)]
        for _ in range(2):
            self.connect_again("a0")
            *first, last = split_cover(msg.Cover(1, items, []))
            longest = self.tell("a0", *first, msg.NeighborReport(last, 0))
        return longest

    def report(self, texts: list[str]) -> float:
        items = [msg.CoverItem(i, text) for i, text in enumerate(texts, 1)]
        *first, last = split_cover(msg.Cover(1, items, []), REPORT_PART_ITEMS)
        records: list[msg.FromEdge | msg.BetweenHeads] = [*first, msg.EdgeReport("", "", last, [])]
        frames = [self.frame(EDGE, *records[at : at + FRAME_UPDATES]) for at in range(0, len(records), FRAME_UPDATES)]
        return self.receive(EDGE, frames)


def steps(subscriptions: int) -> Iterator[tuple[str, float]]:
    """Each step, with its longest round."""
    for name, texts in {"narrow": narrow(subscriptions), "broad": broad(subscriptions)}.items():
        for step, cost in HandoverTargetRig().steps(texts):
            yield f"edge, {step}, {name}", cost
        yield f"head, updates, {name}", CoveredHead().updates(texts)
        yield f"head, report of an edge, {name}", CoveredHead().report_again(texts)
        yield f"head, report of a neighbour, {name}", CoveredHead().neighbor_reports_again(texts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3, help="the shortest counts, so that one disturbance does not")
    parser.add_argument("--json", type=Path, default=Path("bench-report/hostile-steps.json"))
    options = parser.parse_args()
    warm_up()
    gc.disable()
    found: dict[str, float] = {}
    for _ in range(options.runs):
        for step, cost in steps(options.subscriptions):
            found[step] = min(cost, found.get(step, cost))
    for row, cost in found.items():
        print(f"{row:45} {cost:8.2f} ms", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
