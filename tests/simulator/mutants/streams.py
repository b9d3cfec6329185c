"""Messages that mark a point of a stream, and covers: docs/handover.md, section 1."""

from __future__ import annotations

import re

from tests.simulator.mutants.partners import FORGETFUL, NO_DETACH, SILENT_LISTS
from tests.simulator.mutants.rewriting import Change, Detour, Mutant

from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.handover import ClientHandovers
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.edge.queues import DeliveryQueues
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.protocol import messages as msg

LATE, EARLY = 0.05, 0.0
BROKEN_UP = """
late = getattr(self, "_late_covers", [])
self._late_covers = late
for key, adds in [one for one in late if one[0] == outbox.key]:
    late.remove((key, adds))
    self.announce(self.routes.apply(key, msg.Cover(0, adds, [])))
if cover.removes and cover.adds:
    late.append((outbox.key, cover.adds))
    cover = msg.Cover(cover.seq, [], cover.removes)
"""


def _stray(
    name: str, kind: type, seconds: float, *worlds: str, alone: str = "", partner: tuple[Change, ...] = ()
) -> Mutant:
    when = "late" if seconds else "early"
    message = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).upper()
    rule = f"{message} marks a point of its stream, so it keeps its place there."
    return Mutant(f"{name}-{when}", rule, (Detour(kind, seconds),), worlds, partner, alone)


MUTANTS = [
    _stray("cover", msg.Cover, LATE, "sessions-local", "churn", "far", "sessions-across", "sessions-calm"),
    _stray("cut-request", msg.CutRequest, LATE, "sessions-local", "churn", "sessions-across", "calm-drain"),
    _stray(
        "cut-request",
        msg.CutRequest,
        EARLY,
        "busy",
        "sessions-local",
        "churn",
        "far-bumpy",
        "sessions-across",
        "calm-drain",
    ),
    _stray("installed", msg.Installed, LATE, "calm-drain", "sessions-local", "sessions-across"),
    _stray(
        "installed",
        msg.Installed,
        EARLY,
        "busy",
        "sessions-batch",
        "sessions-lag",
        "sessions-local",
        "calm-drain",
        "sessions-across",
        partner=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    _stray("cut", msg.Cut, EARLY, "calm-drain", "sessions-local", "sessions-batch"),
    _stray(
        "cut",
        msg.Cut,
        LATE,
        "calm-drain",
        "sessions-local",
        partner=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    _stray("marker", msg.Marker, EARLY, "calm-across", "sessions-across", "far", "far-bumpy"),
    _stray(
        "resume", msg.ResumeUp, LATE, "busy", "churn", "sessions-edge-crash", "edge-crash-across", "sessions-everything"
    ),
    _stray("resumed", msg.ResumedDown, LATE, "churn", "sessions-edge-crash", "sessions-local"),
    _stray(
        "resumed",
        msg.ResumedDown,
        EARLY,
        "walled-log",
        "busy",
        "churn",
        partner=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    _stray(
        "subs",
        msg.Subs,
        LATE,
        "far",
        "sessions-local",
        "churn",
        partner=(SILENT_LISTS,),
        alone="an edge answers a list for no attachment",
    ),
    _stray(
        "move",
        msg.StartMove,
        LATE,
        "sessions-local",
        "stale-commands",
        "churn",
        "sessions-edge-crash",
        "sessions-drain-deadline",
    ),
    _stray(
        "move-to",
        msg.MoveTo,
        LATE,
        "sessions-local",
        "stale-commands",
        "churn",
        "sessions-edge-crash",
        "sessions-drain-deadline",
    ),
    _stray("stay", msg.Stay, LATE, "sessions-local", "stale-commands", "churn", "sessions-calm"),
    _stray(
        "abort",
        msg.Abort,
        LATE,
        "sessions-local",
        "stale-commands",
        "churn",
        "sessions-drain-deadline",
        "sessions-across",
    ),
    Mutant(
        "end-ahead",
        "END follows everything that is queued.",
        (
            Change(
                DeliveryQueues.end,
                "attachment.queue.append(record())\n        self.put_aside(attachment)",
                "attachment.queue.appendleft(record())\n        self.put_aside(attachment)",
            ),
        ),
        ("sessions-hold", "sessions-lag", "slices"),
    ),
    Mutant(
        "cover-in-two-steps",
        "A cover update is applied in one step: nothing is removed first and added later.",
        (
            Change(
                CoverUpdates.on_cover,
                "self.apply(outbox, cover)",
                BROKEN_UP.strip().replace("\n", "\n        ") + "\n        self.apply(outbox, cover)",
            ),
        ),
        ("far", "sessions-across", "sessions-tree", "far-bumpy"),
    ),
    Mutant(
        "acknowledged-before-passed-on",
        "A cover update is acknowledged once all updates that it caused at the neighbours are acknowledged.",
        (
            Change(
                RoutingTable.settled,
                "if any(self.neighbors[n].up and self.neighbors[n].acked < k for n, k in wait.need.items()):",
                "if False:",
            ),
        ),
        ("far", "far-bumpy", "sessions-across"),
    ),
    Mutant(
        "covered-is-acknowledged",
        "A subscription that is covered by an unacknowledged one is not acknowledged either.",
        (
            Change(
                RoutingTable.wait,
                "need = {name: up.seq for name, up in self.neighbors.items() if name != key}",
                "sent = self.__dict__.setdefault('sent', {})\n"
                "    need = {n: up.seq for n, up in self.neighbors.items() if n != key and up.seq > sent.get(n, 0)}\n"
                "    sent.update({n: up.seq for n, up in self.neighbors.items()})",
            ),
        ),
        ("busy-across", "far", "far-bumpy"),
    ),
    Mutant(
        "numbers-used-again",
        "Each attachment has its own number; records of other attachments are ignored.",
        (
            Change(
                EdgeFinder.new_attachment,
                "self._last_attachment += 1",
                "self._last_attachment = 1 + list(self._client.subscribers).index(subscriber.name)",
            ),
        ),
        ("on-and-on", "churn"),
        harmless="streams keep their order, and an attachment accepts nothing before it serves",
    ),
    Mutant(
        "matched-after-cut",
        "At CUT the source stops matching publications for the subscriber.",
        (
            Change(
                DeliveryQueues.end,
                "attachment.state, attachment.out = AttachmentState.ENDING, self.void",
                "attachment.state = AttachmentState.ENDING",
            ),
            Change(HandoverSource.end, "self.attachments.subscription_table.uninstall(attachment)", "pass"),
        ),
        ("calm-drain", "sessions-local", "sessions-hold"),
        partners=(
            NO_DETACH,
            FORGETFUL,
            Change(ClientHandovers._take_over, "self._ports.release(attachment)\n        subscriber", "subscriber"),
        ),
        alone="the subscriber leaves the source at END, and the client drops repeated deliveries by its watermarks",
    ),
]
