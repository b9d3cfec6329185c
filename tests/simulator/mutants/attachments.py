"""The records of a subscriber at its edges, and the cut: docs/handover.md, sections 3 and 4."""

from __future__ import annotations

from tests.simulator.mutants.partners import ANY_STATE, FORGETFUL, NO_DEADLINE, NO_LEASE, NO_LEAVE, NO_PART
from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.attaching import Attaching
from plimsoll.core.client import moving
from plimsoll.core.client.machine import Client
from plimsoll.core.client.moving import Handover
from plimsoll.core.client.seeking import Seeker
from plimsoll.core.handover.coordinator import Coordinator
from plimsoll.core.handover.giving import Giving
from plimsoll.core.handover.guests import Guests
from plimsoll.core.handover.office import Office
from plimsoll.core.handover.receiving import Receiving
from plimsoll.core.queues import Queues
from plimsoll.core.roster import Roster

LEAVES_AT_CUT = Change(Giving.on_cut, "one.keeps_place and cut.across", "False")

MUTANTS = [
    Mutant(
        "matched-while-cutting",
        "CUTTING is covered, not matched: from INSTALLED on the target has what comes.",
        (
            Change(
                Receiving.on_install,
                "one.state, one.keeps_place = State.CUTTING, True",
                "one.state, one.keeps_place = State.CUTTING, True\n        one.out = one.queue",
            ),
        ),
        ("calm-drain", "sessions-local", "far"),
        partners=(FORGETFUL,),
        alone="what the target then holds too early is below the watermark when it comes",
    ),
    Mutant(
        "target-does-not-hold",
        "HOLD is matched and kept.",
        (
            Change(
                Queues.route,
                "attachment.out = attachment.queue\n        self.put_aside(attachment)\n    elif attachment.state",
                "attachment.out = self.void\n    elif attachment.state",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "live-before-go",
        "Before GO the target says nothing to the subscriber.",
        (Change(Receiving.on_installed, "if one.has_go:", "if True:"),),
        ("sessions-hold", "sessions-lag", "sessions-local", "calm-drain"),
        partners=(ANY_STATE,),
        alone="the client takes nothing from an attachment that does not serve it yet",
    ),
    Mutant(
        "silent-client-takes-all",
        "The subscriber takes nothing from the target before END.",
        (Change(Receiving.on_installed, "if one.has_go:", "if True:"),),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "go-is-forgotten",
        "A GO that comes before INSTALLED is remembered.",
        (Change(Receiving.on_go, "one.has_go = one.state is State.CUTTING", "pass"),),
        ("sessions-local", "far", "sessions-slow", "far-bumpy", "sessions-everything", "sessions-across"),
        partners=(NO_PART,),
        alone="after `drain_seconds` PART closes the attachment, and the subscriber resumes from the log",
    ),
    Mutant(
        "source-leaves-cover-at-cut",
        "Across clusters the source stays in the cover from the cut to RELEASE.",
        (LEAVES_AT_CUT,),
        ("lost-source", "far-bumpy", "sessions-across"),
    ),
    Mutant(
        "no-release-at-done",
        "RELEASE follows DONE.",
        (
            Change(
                Coordinator._arrived,
                "self.host.to_edge(self.host.name, session.plan.source, r.Release(x, (incarnation, n + 1)))",
                "pass",
            ),
        ),
        ("sessions-across", "calm-across"),
        partners=(NO_LEASE,),
        alone="the place at the source has a lease as well",
    ),
    Mutant(
        "held-place-is-dropped",
        "From CUTTING on a place outlasts its link, until RELEASE, ABORT or the end of its lease.",
        (Change(Receiving.on_install, "State.CUTTING, True", "State.CUTTING, False"),),
        ("edge-crash-across", "sessions-across", "far-bumpy", "churn", "sessions-everything"),
    ),
    Mutant(
        "served-place-is-dropped",
        "A place outlasts its link until the head releases it or its lease ends.",
        (Change(Roster.close, "if not attachment.keeps_place:", "if True:"),),
        ("churn", "sessions-across", "far-bumpy"),
    ),
    Mutant(
        "dark-place-stays",
        "A DARK record goes with its link.",
        (
            Change(
                Receiving._attaches,
                "attachment.coming, attachment.keeps_place = State.DARK, session, False",
                "attachment.coming, attachment.keeps_place = State.DARK, session, True",
            ),
        ),
        ("vanish", "churn", "reborn"),
        partners=(
            NO_LEASE,
            Change(Receiving.on_abort, "gone.append(self.roster.records[item.subscriber])", "pass"),
        ),
        alone="ABORT ends it as well, and what is closed ends with its lease",
    ),
    Mutant(
        "dark-is-covered",
        "DARK is not in the cover: nothing comes for who is not cut.",
        (
            Change(
                Receiving._attaches,
                "self._attached[session].append(item.subscriber)",
                "self._attached[session].append(item.subscriber)\n"
                "    attachment.is_covered = True\n"
                "    for cover in self.roster.holdings.step(self.roster.holdings.numbered(attachment), []):\n"
                "        self.host.up(cover)",
            ),
            Change(
                Roster.install,
                "self.holdings.step([one for numbered in taken.values() for one in numbered], removes)",
                "self.holdings.step([one for a, numbered in taken.items() for one in numbered "
                "if a.state is not State.CUTTING], removes)",
            ),
        ),
        ("calm-drain", "sessions-local", "churn"),
        harmless="publications for who is not cut yet would come in vain",
    ),
    Mutant(
        "asks-only-if-something-changes",
        "CUT_REQUEST is said and numbered even when the covering set does not change.",
        (
            Change(
                Receiving.on_install,
                "self.host.up(r.CutRequest(session, cover, items))",
                "if cover.adds or cover.removes:\n        self.host.up(r.CutRequest(session, cover, items))",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_DEADLINE,),
        alone="nobody is cut then, and the head's deadline ends it",
    ),
    Mutant(
        "next-cover-is-without-them",
        "While a cut is under way every cover of the target has all of its records but the dark ones.",
        (
            Change(
                Roster.install,
                "*first, last = self.holdings.step(",
                "late = [a for a in self.records.values() if a.state is State.CUTTING and a not in taken]\n"
                "    removes = [*removes, *(n for a in late for n, _ in self.holdings.numbered(a) if a.is_covered)]\n"
                "    for a in late:\n"
                "        a.is_covered = False\n"
                "    *first, last = self.holdings.step(",
            ),
        ),
        ("busy", "sessions-batch", "far"),
    ),
    Mutant(
        "owner-is-not-swapped",
        "The step that answers INSTALLED swaps the owner.",
        (
            Change(
                Coordinator.cut_members,
                "self.host.owners.swap(x, key, (incarnation, n + 1), (token[1], token[2]))",
                "pass",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "cover-is-not-applied",
        "The step that answers INSTALLED applies the cover.",
        (
            Change(
                Office.on_cut_request,
                "host.announce(host.routes.apply(outlet.key, host.gathered(outlet, request.cover)))",
                "pass",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "installed-before-cover",
        "INSTALLED says from where on the cover holds: it is said in the step that applies it.",
        (
            Change(
                Office.on_cut_request,
                "host.announce(host.routes.apply(outlet.key, host.gathered(outlet, request.cover)))",
                "late = self.__dict__.setdefault('late', [])\n"
                "    late.append((outlet, request.cover))\n"
                "    for at, cover in late[:-1]:\n"
                "        host.announce(host.routes.apply(at.key, cover)) if at.key in host.streams.outlets else None\n"
                "    del late[:-1]",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "no-end",
        "At CUT the source says END.",
        (
            Change(
                Giving.end,
                "if not self.roster.queues.end(one, partial(self._end, session, token, [one.id])):",
                "one.state = State.ENDING\n        if False:",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_PART,),
        alone="after `drain_seconds` PART closes the attachments, and the subscriber resumes from the log",
    ),
    Mutant(
        "no-go",
        "At END the subscriber says GO.",
        (
            Change(
                moving._go,
                "client.say(port.link, r.Go(session, part))",
                "pass",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_PART,),
        alone="after `drain_seconds` PART closes the attachment, and the subscriber resumes from the log",
    ),
    Mutant(
        "source-is-not-left",
        "At END the subscriber detaches from the source.",
        (Change(moving.on_end, "client.say_detach(*ended)", "pass"),),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "hold-is-not-flushed",
        "At GO what was held comes first.",
        (
            Change(
                Receiving._go,
                "self.roster.queues.live(one)",
                "one.queue.clear()\n    one.queue_bytes = one.counted = 0\n    self.roster.queues.live(one)",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "live-ahead-of-hold",
        "At GO what was held comes first, and what is live follows it.",
        (
            Change(
                Queues.route,
                "elif port.behind or attachment.paused or attachment.queue or attachment.dropped:",
                "elif port.behind or attachment.paused:",
            ),
        ),
        ("sessions-hold", "sessions-local", "sessions-batch", "sessions-lag"),
    ),
    Mutant(
        "no-done",
        "At GO the target says DONE.",
        (Change(Receiving._go, "self._done[one.coming].append(one.subscriber)", "pass"),),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "done-does-not-pass",
        "The head of the target passes DONE on to the one that decides.",
        (Change(Guests.done, "self.host.to_head(head, r.Done(done.session, members, done.edge, checks))", "pass"),),
        ("calm-across", "sessions-across"),
    ),
    Mutant(
        "resume-is-no-done",
        "Across clusters a RESUME that names the session is the DONE.",
        (Change(Guests.resumed, "self.host.to_head(guest.coordinator, r.Done(session, [subscriber]))", "pass"),),
        ("long-hold-across", "lost-target"),
        partners=(NO_PART,),
        alone="after `drain_seconds` the session ends in any case",
    ),
    Mutant(
        "end-without-place",
        "END carries the place at which the target's stream goes on.",
        (
            Change(
                moving._take_over,
                "subscriber.take_over(handover.next, end.token)",
                "subscriber.take_over(handover.next, subscriber.token)",
            ),
        ),
        ("steady-across", "sessions-across", "far-bumpy", "edge-crash-across"),
    ),
    Mutant(
        "end-without-place-when-alone",
        "Without a target the subscriber resumes at END from the place of the cut.",
        (Change(moving._take_over, "subscriber.set_token(end.token)", "pass"),),
        ("lost-target", "sessions-hold", "far-bumpy"),
        partners=(LEAVES_AT_CUT,),
        alone="then it resumes at the head of the source, in whose cover it still is",
    ),
    Mutant(
        "cut-loses-the-queue",
        "What came before CUT reaches the subscriber ahead of END, from its queue or from the log.",
        (Change(Giving.on_cut, "if one.state is State.LIVE or one.position >= self.host.position:", "if True:"),),
        ("slow-cut", "slices"),
    ),
    Mutant(
        "drains-beyond-the-cut",
        "Nothing behind CUT comes from the source: what it fetches from the log ends at the cut.",
        (
            Change(
                Queues._emptied,
                "if attachment.end is None or attachment.position < attachment.end[0]:",
                "if attachment.end is None or attachment.position < self.host.position:",
            ),
        ),
        ("slow-cut", "slices"),
        partners=(FORGETFUL,),
        alone="what the source then delivers too much is below the watermark when it comes again",
    ),
    Mutant(
        "moves-who-is-behind",
        "Only who is LIVE at the source, attached, and in this epoch, is moved.",
        (Change(Giving.on_move, "or one.state is not State.LIVE or", "or"),),
        ("slow-cut", "slices", "sessions-hold"),
        harmless="who is behind would be cut all the same, and be drained for longer",
    ),
    Mutant(
        "cuts-who-has-not-attached",
        "Only who has attached at the target is cut.",
        (
            Change(Coordinator.cut, 'session.of("attached")', 'session.of("attached", "preparing")'),
            Change(
                Coordinator.cut,
                'self.refuse(session, session.of("preparing"), why="was not attached at the target in time")',
                "pass",
            ),
            Change(
                Receiving.on_install,
                "missing = [x for x in install.members if not self._is_coming(x, session, *COMING)]",
                "missing = []",
            ),
        ),
        ("sessions-local", "sessions-drain-deadline", "sessions-calm"),
        partners=(NO_DEADLINE,),
        alone="the target refuses whom it does not have, and the head's deadline ends what is not cut",
    ),
    Mutant(
        "takes-who-has-no-place",
        "An ATTACH without a place is refused.",
        (
            Change(
                Receiving._refusal,
                "if slot is None or slot.session != session or slot.replay or item.subscriber in self.roster.records:",
                "if item.subscriber in self.roster.records:",
            ),
        ),
        ("sessions-drain-deadline", "sessions-local", "churn", "stale-commands"),
        partners=(NO_LEAVE,),
        alone="the subscriber leaves the target when it hears that it stays",
    ),
    Mutant(
        "refused-in-silence",
        "An ATTACH that is refused is answered.",
        (
            Change(
                Receiving._attaches,
                "self.host.say(link, r.Shut(item.attachment, code, REFUSALS[code]))",
                "pass",
            ),
        ),
        ("sessions-drain-deadline", "sessions-calm", "sessions-local", "stale-commands"),
        partners=(Change(Giving.on_abort, "self.host.say(one.link, r.Stay(one.id, abort.session))", "pass"),),
        harmless="the head hears of it as well, and tells the subscriber to stay",
    ),
    Mutant(
        "stay-is-not-said",
        "Who stays hears STAY.",
        (Change(Giving.on_abort, "self.host.say(one.link, r.Stay(one.id, abort.session))", "pass"),),
        ("sessions-calm", "sessions-local", "stale-commands"),
    ),
    Mutant(
        "undone-attachment-stays",
        "ABORT ends what is on its way at the target.",
        (Change(Receiving.on_abort, "gone.append(self.roster.records[item.subscriber])", "pass"),),
        ("sessions-calm", "sessions-local", "sessions-across"),
        partners=(NO_LEAVE,),
        alone="the subscriber detaches from the target at STAY",
    ),
    Mutant(
        "next-is-not-left",
        "Whoever loses the edge that serves him leaves the target, too.",
        (Change(Client.detach, "moving.leave(self, subscriber, withdraw=withdraw)", "subscriber.handover = None"),),
        ("slow-mediator", "churn", "sessions-edge-crash"),
        partners=(Change(Receiving.on_abort, "gone.append(self.roster.records[item.subscriber])", "pass"),),
        alone="the head takes it off the target at RESUME",
    ),
    Mutant(
        "full-hold-takes-no-end",
        "A hold that is full ends the target's attachment, not the source's.",
        (Change(Queues._check, "elif is_full and state is State.HOLD:", "elif False:"),),
        ("long-hold", "slow-cut", "sessions-hold"),
    ),
    Mutant(
        "hold-obeys-policies",
        "No policy for full queues takes anything from what is held.",
        (
            Change(
                Queues._check,
                "elif is_full and state is State.LIVE:",
                "elif is_full and state in (State.LIVE, State.HOLD):",
            ),
            Change(
                Queues._overflow,
                "self.block(attachment)",
                "attachment.drop_oldest(self.host.config.head_name)\n        attachment.dropped = None",
            ),
        ),
        ("sessions-hold", "sessions-lag", "slices"),
    ),
    Mutant(
        "asks-the-dead-target",
        "Without a target the subscriber drains the source, and resumes at END wherever its place is known.",
        (Change(Seeker.go_on, "elif not handover.endpoint:", "elif handover.endpoint is None:"),),
        ("lost-target", "edge-crash-across"),
        harmless="it would ask the target in vain, and then the head",
    ),
    Mutant(
        "changes-after-the-cut",
        "After the cut it is the target that answers for the list.",
        (Change(Attaching.on_subs, "if attachment.state is State.ENDING or attachment.end is not None:", "if False:"),),
        ("walled-target", "far", "slow-cut"),
        partners=(Change(Handover.counted, "min(acked, self.held) if self.is_asked else acked", "acked"),),
        harmless="a change counts when the target has it, too",
    ),
]
