"""What a policy has chosen, for a person: who was asked, what moves and what stays, each with its reason, and loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli.output import table
from plimsoll.core.session import Session
from plimsoll.core.session.record import Forecast, Loads, Offer

METRICS = {"input": "input utilisation", "output": "output utilisation", "match": "matching delay"}


def trigger(item: Mapping[str, Any]) -> Iterator[str]:
    """Which broker wanted the session, and why."""
    found = item.get("spec", {}).get("trigger")
    if found is not None:
        yield f"Wanted by:   {found['broker']}: {found.get('reason', '')}"


def asked(session: Session) -> Iterator[str]:
    """The edges that were asked, in order, with their answers."""
    if session.offers:
        yield "Asked:"
        rows = [[one.edge, METRICS[one.metric], f"{one.difference:.3f}", _answer(one)] for one in session.offers]
        yield from (f"  {line}" for line in table(["EDGE", "TO BALANCE", "DIFFERENCE", "ANSWER"], rows))


def _answer(offer: Offer) -> str:
    if not offer.answer:
        return "not answered yet" if offer.asked_at is not None else "not asked"
    return f"{offer.answer}: {offer.message}" if offer.message else offer.answer


def reasons(session: Session) -> Iterator[str]:
    """What moves, what does not, and why it is no more."""
    plan = session.plan
    if plan is None or not plan.policy:
        return
    yield f"Chosen by:   {plan.policy}, to balance {METRICS.get(plan.metric, plan.metric)}"
    if plan.moves:
        yield "Moves:"
        rows = [[str(one.count), one.what or "-", one.reason] for one in plan.moves]
        yield from (f"  {line}" for line in table(["SUBSCRIBERS", "ASK FOR", "WHY"], rows))
    if plan.stays:
        yield "Stays:"
        rows = [[str(one.count), one.what or "-", f"{one.kind}: {one.reason}"] for one in plan.stays]
        yield from (f"  {line}" for line in table(["SUBSCRIBERS", "ASK FOR", "WHY"], rows))
    yield f"Ends with:   {plan.stop}"


def loads(session: Session) -> Iterator[str]:
    """Each load of both edges: before, as predicted, and as measured, with the error."""
    forecasts = [] if session.plan is None else [one for one in session.plan.forecasts if one.before is not None]
    if not forecasts:
        return
    yield "Loads:"
    rows = [row for one in forecasts for row in _rows(one)]
    yield from (f"  {line}" for line in table(["EDGE", "LOAD", "BEFORE", "PREDICTED", "MEASURED", "ERROR"], rows))


def _rows(one: Forecast) -> Iterator[list[str]]:
    for metric, title in METRICS.items():
        before, after, measured = (_shown(metric, loads) for loads in (one.before, one.after, one.measured))
        error = "-" if one.after is None or one.measured is None else _error(metric, one.after, one.measured)
        yield [one.edge, title, before, after, measured, error]


def _shown(metric: str, loads: Loads | None) -> str:
    if loads is None:
        return "-"
    return _written(metric, _value(metric, loads))


def _error(metric: str, predicted: Loads, measured: Loads) -> str:
    return _written(metric, abs(_value(metric, measured) - _value(metric, predicted)))


def _value(metric: str, loads: Loads) -> float:
    return loads.match_seconds if metric == "match" else loads.input if metric == "input" else loads.output


def _written(metric: str, value: float) -> str:
    return f"{1000 * value:.3f} ms" if metric == "match" else f"{value:.4f}"
