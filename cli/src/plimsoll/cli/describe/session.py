"""One session as text: its request, plan, forecasts and progress, and the outcome of each member with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from plimsoll.cli.describe import policy_plan
from plimsoll.cli.output import table
from plimsoll.cli.tables import duration_text
from plimsoll.core.printable import printable_cell
from plimsoll.core.session import Session, moves, status
from plimsoll.core.session.batch import OUTCOMES
from plimsoll.core.session.delivery_verdict import DELIVERY_FAULTS
from plimsoll.core.session.request.planner import STAY_REASONS
from plimsoll.core.session.state import PHASES
from plimsoll.core.session.status import measured_drain_seconds, utilization_error
from plimsoll.mediator.session_objects import stored_session

Object = Mapping[str, Any]
OUTCOME_MEANINGS: Mapping[str, str] = {
    "": "has not been moved yet",
    "moved": "is served by the target",
    "stayed": "is served by the source, as before",
    "away": "is not connected; its source keeps its place until its lease ends",
    "gone": "is not known at the source any more: it left, or its lease ended",
    "returned": "came back by itself, to the source or another edge, and continues there",
    "detached": "was away when its time ran out; it resumes where it was when it comes back",
    "unknown": "is not known to be served: its source or head has not answered; it goes on from where it was",
}


def session_lines(item: Object, at: datetime) -> Iterator[str]:
    """The lines of `describe` about a session beside its specification, conditions and events."""
    session = stored_session(item)
    if session is None:
        yield "Phase:       Requested (the mediator has not seen it yet)"
        return
    told = status(session, at.timestamp() if not session.is_over else session.ended_at or 0.0)
    reason = f" ({told['reason']}: {told['message']})" if told["reason"] else ""
    yield f"Phase:       {told['phase']}{reason}"
    yield from policy_plan.trigger_lines(item)
    yield from _attempt_lines(told)
    yield from _deadline_lines(session, at)
    yield from _progress_lines(told)
    yield from delivery_audit_lines(told, session.member_noun)
    yield "Time in each state:"
    spent = {one["phase"]: one["milliseconds"] for one in told["timeInPhases"]}
    yield from _aligned_lines([(phase, f"{spent[phase] / 1000:.3f} s") for phase in PHASES if spent.get(phase)])
    yield from policy_plan.offer_lines(session)
    yield from _plan_lines(session, told)
    yield from policy_plan.policy_choice_lines(session)
    yield from _forecast_lines(session)
    yield from policy_plan.load_lines(session)
    yield from _batch_lines(session)
    yield from _child_lines(told)


def _attempt_lines(told: Object) -> Iterator[str]:
    if told["history"]:
        yield f"Attempt:     {told['attempt']}; before:"
        yield from _aligned_lines(
            [(f"{one['number']}", one["phase"], one["reason"], one["message"]) for one in told["history"]]
        )


def _deadline_lines(session: Session, at: datetime) -> Iterator[str]:
    if session.is_over:
        yield f"Took:        {(session.ended_at or 0.0) - session.requested_at:.1f} s from request to end"
    else:
        yield f"Deadline:    in {duration_text(session.deadline_at - at.timestamp())}"


def _progress_lines(told: Object) -> Iterator[str]:
    progress = told["progress"]
    if not progress["planned"]:
        return
    counts = ", ".join(f"{progress[state]} {state}" for state in OUTCOMES if progress[state]) or "none yet"
    yield f"Progress:    {progress['percent']} % of {progress['planned']}: {counts}"
    if "etaSeconds" in progress:
        yield f"ETA:         {duration_text(progress['etaSeconds'])}, at {progress['movesPerMinute']} per minute"


def delivery_audit_lines(told: Object, noun: str = "subscribers") -> Iterator[str]:
    """Deliveries as counted by the moved subscribers, or by subscribers of moved publishers. `noun`: what has moved."""
    if (audit := told.get("audit")) is None:
        return
    moved, known = told["progress"]["moved"], audit["subscribers"]
    who = f"{known} of the {moved} moved {noun}"
    if "publishers" in audit:
        who = f"{known} of {audit['asked']} subscribers asked, about {audit['publishers']} moved publishers"
    if not known:
        yield f"Deliveries:  not known: {_uncounted_text(audit, moved, noun)}"
        return
    sums = ", ".join(f"{audit[what]} {what}" for what in ("lost", "duplicated", "reordered"))
    again = f"; {audit['suppressed']} repeated deliveries were suppressed" if audit["suppressed"] else ""
    yield f"Deliveries:  {sums}, as counted by {who}{again}"
    if "publishers" in audit:
        yield f"             of {audit['before']} due before the move, and {audit['after']} behind it"
    if any(audit[what] for what in ("lost", "duplicated", "reordered")):
        yield f"Delivered:   False ({DELIVERY_FAULTS}: look for restarted heads, full queues and GAPs at that time)"


def _uncounted_text(audit: Object, moved: int, noun: str) -> str:
    if "publishers" not in audit:
        return f"no count has been reported of the {moved} moved {noun}"
    if audit["asked"]:
        return f"none of the {audit['asked']} subscribers that were asked has reported a count"
    return f"no subscriber takes what the {audit['publishers']} moved publishers have published lately"


def _plan_lines(session: Session, told: Object) -> Iterator[str]:
    if "plan" not in told:
        return
    plan = told["plan"]
    how = f", by {plan['handover']} ({plan['why']})" if plan["why"] else ""
    yield f"Plan:        {told['planHash']}{how}"
    yield from _aligned_lines(
        [
            (f"{pair['source']} -> {pair['target']}", f"{pair['subscribers']} {session.member_noun}")
            for pair in plan["pairs"]
        ]
    )
    if plan["rejected"]:
        yield "Not in the plan:"
        yield from _aligned_lines(
            [(f"{one['subscribers']}", STAY_REASONS.get(one["reason"], one["reason"])) for one in plan["rejected"]]
        )


def _forecast_lines(session: Session) -> Iterator[str]:
    """The forecast for each edge beside its later measurement."""
    plan = session.plan
    if plan is None or not plan.forecasts:
        return
    rows = []
    for one in plan.forecasts[:EDGES_SHOWN]:
        is_measured = one.utilization_measured is not None
        rows.append(
            [
                one.edge,
                _percent_text(one.utilization_before),
                _percent_text(one.utilization_after),
                _percent_text(one.utilization_measured),
                _percent_text(utilization_error(one) if is_measured else None),
                str(one.subscribers_before),
                str(one.subscribers_after),
                str(one.subscribers_measured) if is_measured else "-",
            ]
        )
    titles = [
        policy_plan.party_title(session),
        "LOAD",
        "PREDICTED",
        "MEASURED",
        "ERROR",
        session.member_noun.upper(),
        "PREDICTED",
        "MEASURED",
    ]
    yield "Predicted and measured:"
    yield from (f"  {line}" for line in table(titles, rows))
    if took := measured_drain_seconds(session):
        worst, mean = max(took), sum(took) / len(took)
        yield (f"  from cut to end: predicted {plan.drain_seconds:.3f} s, measured {mean:.3f} s on average,"
               f" {worst:.3f} s at most")  # fmt: skip


def _percent_text(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.1f}%"


EDGES_SHOWN = 20
BATCHES_SHOWN = 10


def _batch_lines(session: Session) -> Iterator[str]:
    if not session.batches:
        return
    shown = session.batches[-BATCHES_SHOWN:]
    more = len(session.batches) - len(shown)
    yield f"Batches:     {len(session.batches)}" + (f"; the last {len(shown)}:" if more else "")
    rows = []
    for batch in shown:
        moved = sum(state == "moved" for state in batch.members.values())
        took = "-" if batch.ended_at is None else f"{batch.ended_at - batch.begun_at:.3f} s"
        cut = "-" if batch.cut_at is None or batch.ended_at is None else f"{batch.ended_at - batch.cut_at:.3f} s"
        way = "replay" if batch.replay else "drain"
        rows.append([batch.id, batch.state or "-", way, f"{moved}/{len(batch.members)}", took, cut, batch.reason])
    titles = ["ID", "STATE", "BY", "MOVED", "TOOK", "BEHIND CUT", "REASON"]
    yield from (f"  {line}" for line in table(titles, rows))


def _child_lines(told: Object) -> Iterator[str]:
    if not told.get("children"):
        return
    yield "Children:"
    rows = [
        [one["name"], one["source"], one["target"], f"{one.get('moved', 0)}/{one['planned']}", one["phase"],
         one["reason"]]
        for one in told["children"]
    ]  # fmt: skip
    yield from (f"  {line}" for line in table(["NAME", "SOURCE", "TARGET", "MOVED", "PHASE", "REASON"], rows))


def _aligned_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cells = [[printable_cell(text) for text in row] for row in rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))] if cells else []
    for row in cells:
        yield ("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))).rstrip()


# ---------------------------------------------------------------- explain


def session_explanation(item: Object, children: Sequence[Object]) -> Iterator[str]:
    """Why a session did what it did: edges, promise beside measurement, and each subscriber with its outcome."""
    session = stored_session(item)
    if session is None:
        yield f"{item['metadata']['name']} has no plan; it is Requested"
        yield from _between_lines(item, {})
        yield from policy_plan.trigger_lines(item)
        return
    told = status(session, session.ended_at or session.phase_at)
    yield from _headlines(session)
    yield from _between_lines(item, told)
    yield from _attempt_lines(told)
    yield from _progress_lines(told)
    yield from delivery_audit_lines(told, session.member_noun)
    yield from policy_plan.trigger_lines(item)
    yield from policy_plan.offer_lines(session)
    yield from policy_plan.policy_choice_lines(session)
    yield from _forecast_lines(session)
    yield from policy_plan.load_lines(session)
    yield from _child_lines(told)
    yield from _measured_elsewhere_lines(item, session)
    if session.plan is not None:
        yield from _member_lines(session, children)


def _headlines(session: Session) -> Iterator[str]:
    """State and reason; the plan's hash, the way of its hand-over, and why this way."""
    plan = session.plan
    if plan is None:
        why = f": {session.reason}: {session.message}" if session.reason else ""
        yield f"{session.name} has no plan{' of its own' if session.children else ''}; it is {session.phase}{why}"
        return
    yield f"{session.name}: {session.phase}, {session.reason}: {session.message}"
    if session.kind == "publishers":
        yield f"plan {plan.hash}: {plan.members} publishers"
        return
    why = plan.why or "no subscriber moves"
    way = "" if session.kind == "slices" else f" by {plan.handover}, because"
    yield f"plan {plan.hash}: {plan.members} {session.member_noun}{way or ':'} {why}"


def _between_lines(item: Object, told: Object) -> Iterator[str]:
    """From where to where: as it came about, else as it was requested."""
    for title, role in (("From:", "source"), ("To:", "target")):
        requested = item.get("spec", {}).get(role, {}).get("name", "")
        if found := told.get(role) or requested:
            yield f"{title:<12} {printable_cell(found)}"


def _measured_elsewhere_lines(item: Object, session: Session) -> Iterator[str]:
    """Where the loads of a session are that does not predict or measure them itself."""
    if session.parent:
        owners = [each["name"] for each in item["metadata"].get("ownerReferences", []) if each.get("controller")]
        name = printable_cell(owners[0]) if owners else "its parent"
        yield f"Part of:     {name}, which measures the loads once all its children are over"
    elif session.between and session.children:
        yield "Predictions: those of its children: `plimsoll explain lbs/CHILD`"


def _member_lines(session: Session, children: Sequence[Object]) -> Iterator[str]:
    found = _member_outcomes(session, children)
    rows = [
        [move["subscriber"], move["source"], move["target"], found.get(move["subscriber"], move["outcome"]) or "-",
         _move_reason(move, found)]
        for move in moves(session) if move["outcome"] != "rejected"
    ]  # fmt: skip
    if rows or session.plan is None or not session.plan.policy:
        yield ""
        yield from table(["SUBSCRIBER", "FROM", "TO", "OUTCOME", "WHY"], rows)
    rejected = [move for move in moves(session) if move["outcome"] == "rejected"]
    if rejected:
        yield ""
        rows = [[move["subscriber"], STAY_REASONS.get(move["reason"], move["reason"])] for move in rejected]
        yield from table(["NOT MOVED", "WHY"], rows)


def _member_outcomes(session: Session, children: Sequence[Object]) -> dict[str, str]:
    """Outcomes of a session's members; those of a parent are stored with its children."""
    found = dict(session.outcomes())
    for child in children:
        known = stored_session(child)
        if known is not None:
            found |= known.outcomes()
    return found


def _move_reason(move: Object, outcomes: Mapping[str, str]) -> str:
    outcome = outcomes.get(move["subscriber"], move["outcome"])
    reason = f": {move['reason']}" if move["reason"] else ""
    return OUTCOME_MEANINGS.get(outcome, outcome) + reason
