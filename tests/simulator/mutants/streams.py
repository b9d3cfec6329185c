"""What travels in a stream, and covers: docs/handover.md, section 1."""

from __future__ import annotations

from tests.simulator.mutants.partners import FORGETFUL, NO_DETACH
from tests.simulator.mutants.rewriting import Change, Detour, Mutant

from plimsoll.core import records as r
from plimsoll.core.client import moving
from plimsoll.core.client.seeking import Seeker
from plimsoll.core.handover.giving import Giving
from plimsoll.core.head import Head
from plimsoll.core.queues import Queues
from plimsoll.core.routes import Routes

LATE, EARLY = 0.05, 0.0
BROKEN_UP = """
late = getattr(self, "_late_covers", [])
self._late_covers = late
for key, adds in [one for one in late if one[0] == outlet.key]:
    late.remove((key, adds))
    self.announce(self.routes.apply(key, r.Cover(0, adds, [])))
if cover.removes and cover.adds:
    late.append((outlet.key, cover.adds))
    cover = r.Cover(cover.seq, [], cover.removes)
"""


def _stray(
    name: str, kind: type, seconds: float, *worlds: str, alone: str = "", partner: tuple[Change, ...] = ()
) -> Mutant:
    when = "late" if seconds else "early"
    rule = f"{kind.__name__.upper()} travels in the stream whose point it defines."
    return Mutant(f"{name}-{when}", rule, (Detour(kind, seconds),), worlds, partner, alone)


MUTANTS = [
    _stray("cover", r.Cover, LATE, "sessions-local", "churn", "far", "sessions-across", "sessions-calm"),
    _stray("cut-request", r.CutRequest, LATE, "sessions-local", "churn", "sessions-across", "calm-drain"),
    _stray(
        "cut-request",
        r.CutRequest,
        EARLY,
        "busy",
        "sessions-local",
        "churn",
        "far-bumpy",
        "sessions-across",
        "calm-drain",
    ),
    _stray("installed", r.Installed, LATE, "calm-drain", "sessions-local", "sessions-across"),
    _stray(
        "installed",
        r.Installed,
        EARLY,
        "busy",
        "sessions-batch",
        "sessions-lag",
        "sessions-local",
        "calm-drain",
        "sessions-across",
        partner=(FORGETFUL,),
        alone="what B then delivers too early is below the watermark when it comes again",
    ),
    _stray("cut", r.Cut, EARLY, "calm-drain", "sessions-local", "sessions-batch"),
    _stray(
        "cut",
        r.Cut,
        LATE,
        "calm-drain",
        "sessions-local",
        partner=(FORGETFUL,),
        alone="what A then delivers too long is below the watermark when B delivers it",
    ),
    _stray("marker", r.Marker, EARLY, "calm-across", "sessions-across", "far", "far-bumpy"),
    _stray(
        "resume", r.ResumeUp, LATE, "busy", "churn", "sessions-edge-crash", "edge-crash-across", "sessions-everything"
    ),
    _stray("resumed", r.ResumedDown, LATE, "churn", "sessions-edge-crash", "sessions-local"),
    _stray(
        "resumed",
        r.ResumedDown,
        EARLY,
        "walled-log",
        "busy",
        "churn",
        partner=(FORGETFUL,),
        alone="what comes twice is below the watermark",
    ),
    _stray("subs", r.Subs, LATE, "far", "sessions-local", "churn"),
    _stray(
        "move",
        r.Move,
        LATE,
        "sessions-local",
        "stale-commands",
        "churn",
        "sessions-edge-crash",
        "sessions-drain-deadline",
    ),
    _stray(
        "move-to",
        r.MoveTo,
        LATE,
        "sessions-local",
        "stale-commands",
        "churn",
        "sessions-edge-crash",
        "sessions-drain-deadline",
    ),
    _stray("stay", r.Stay, LATE, "sessions-local", "stale-commands", "churn", "sessions-calm"),
    _stray(
        "abort",
        r.Abort,
        LATE,
        "sessions-local",
        "stale-commands",
        "churn",
        "sessions-drain-deadline",
        "sessions-across",
    ),
    Mutant(
        "end-ahead",
        "END travels in the stream whose point it defines: behind all that is queued.",
        (
            Change(
                Queues.end,
                "attachment.queue.append(record())\n        self.put_aside(attachment)",
                "attachment.queue.appendleft(record())\n        self.put_aside(attachment)",
            ),
        ),
        ("sessions-hold", "sessions-lag", "slices"),
    ),
    Mutant(
        "cover-in-two-steps",
        "A covering update is applied in one step: nothing is removed first and added later.",
        (
            Change(
                Head._on_cover,
                "self.announce(self.routes.apply(outlet.key, self.gathered(outlet, cover)))",
                BROKEN_UP.strip().replace("\n", "\n    ")
                + "\n    self.announce(self.routes.apply(outlet.key, self.gathered(outlet, cover)))",
            ),
        ),
        ("far", "sessions-across", "sessions-tree", "far-bumpy"),
    ),
    Mutant(
        "acknowledged-before-passed-on",
        "A covering update is acknowledged when all that was sent onward is acknowledged.",
        (
            Change(
                Routes.settled,
                "if any(self.upstreams[n].up and self.upstreams[n].acked < k for n, k in wait.need.items()):",
                "if False:",
            ),
        ),
        ("far", "far-bumpy", "sessions-across"),
    ),
    Mutant(
        "covered-is-acknowledged",
        "Being covered by what is unacknowledged is not yet being covered.",
        (
            Change(
                Routes.wait,
                "need = {name: up.seq for name, up in self.upstreams.items() if name != key}",
                "told = self.__dict__.setdefault('told', {})\n"
                "    need = {n: up.seq for n, up in self.upstreams.items() if n != key and up.seq > told.get(n, 0)}\n"
                "    told.update({n: up.seq for n, up in self.upstreams.items()})",
            ),
        ),
        ("busy-across", "far", "far-bumpy"),
    ),
    Mutant(
        "numbers-used-again",
        "Each attachment has a number of its own; a record about another one is ignored.",
        (
            Change(
                Seeker.new_attachment,
                "self._last_attachment += 1",
                "self._last_attachment = 1 + list(self._client.subscribers).index(subscriber.name)",
            ),
        ),
        ("on-and-on", "churn"),
        harmless="streams keep their order, and an attachment takes nothing before it serves",
    ),
    Mutant(
        "matched-after-cut",
        "At CUT the source stops: what follows is not for x any more.",
        (
            Change(
                Queues.end,
                "attachment.state, attachment.out = State.ENDING, self.void",
                "attachment.state = State.ENDING",
            ),
            Change(Giving.end, "self.roster.holdings.uninstall(one)", "pass"),
        ),
        ("calm-drain", "sessions-local", "sessions-hold"),
        partners=(
            NO_DETACH,
            FORGETFUL,
            Change(moving._take_over, "client.release(attachment)\n        subscriber", "subscriber"),
        ),
        alone="the subscriber leaves the source at END, and what comes twice is below the watermark",
    ),
]
