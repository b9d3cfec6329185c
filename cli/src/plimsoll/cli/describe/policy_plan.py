"""A policy's choices as text: the edges asked, moves and stays, each with its reason, and the loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli.output import table
from plimsoll.core.session import Session
from plimsoll.core.session.session_plan import Forecast, LoadFigures, Offer

METRIC_TITLES = {"input": "input utilisation", "output": "output utilisation", "match": "matching delay"}
GROUP_TITLES = {"cost": "the work of consumers a second", "usage": "processor and memory of consumers"}
HEAD_TITLES = {"input": "downlink", "output": "uplink"}
"""The loads of heads, which plans for publishers are about."""


def trigger_lines(item: Mapping[str, Any]) -> Iterator[str]:
    """Which broker wanted the session, and why."""
    found = item.get("spec", {}).get("trigger")
    if found is not None:
        yield f"Trigger:     {found['broker']}: {found.get('reason', '')}"


def offer_lines(session: Session) -> Iterator[str]:
    """The edges that were asked, in order, with their answers."""
    if session.offers:
        yield "Asked edges:"
        rows = [
            [one.edge, METRIC_TITLES.get(one.metric, one.metric), f"{one.difference:.3f}", _answer_text(one)]
            for one in session.offers
        ]
        yield from (f"  {line}" for line in table(["EDGE", "TO BALANCE", "DIFFERENCE", "ANSWER"], rows))


def _answer_text(offer: Offer) -> str:
    if not offer.answer:
        return "not answered yet" if offer.asked_at is not None else "not asked"
    return f"{offer.answer}: {offer.message}" if offer.message else offer.answer


def party_title(session: Session) -> str:
    """What its members go from and to, as the title of a column."""
    return {"publishers": "HEAD", "slices": "CONSUMER"}.get(session.kind, "EDGE")


def policy_choice_lines(session: Session) -> Iterator[str]:
    """Moves, stays, and why the plan moves no more."""
    plan = session.plan
    if plan is None or not plan.policy:
        return
    yield f"Chosen by:   {plan.policy}, to balance {(METRIC_TITLES | GROUP_TITLES).get(plan.metric, plan.metric)}"
    what = {"publishers": "OF", "slices": "WHICH"}.get(session.kind, "ASK FOR")
    titles = [session.member_noun.upper(), what, "WHY"]
    if plan.moves:
        yield "Moves:"
        rows = [[str(one.count), one.what or "-", one.reason] for one in plan.moves]
        yield from (f"  {line}" for line in table(titles, rows))
    if plan.stays:
        yield "Stays:"
        rows = [[str(one.count), one.what or "-", f"{one.kind}: {one.reason}"] for one in plan.stays]
        yield from (f"  {line}" for line in table(titles, rows))
    yield f"Ends with:   {plan.stop}"


def load_lines(session: Session) -> Iterator[str]:
    """Each load of both edges: before, as predicted and by how much that is uncertain, as measured, and the error."""
    forecasts = [] if session.plan is None else [one for one in session.plan.forecasts if one.before is not None]
    if not forecasts:
        return
    yield "Loads:"
    is_of_heads = session.kind == "publishers"
    titles = HEAD_TITLES if is_of_heads else METRIC_TITLES
    rows = [row for one in forecasts for row in _forecast_rows(one, titles)]
    yield from (
        f"  {line}"
        for line in table(
            ["HEAD" if is_of_heads else "EDGE", "LOAD", "BEFORE", "PREDICTED", "+/-", "MEASURED", "ERROR"], rows
        )
    )


def _forecast_rows(one: Forecast, titles: Mapping[str, str]) -> Iterator[list[str]]:
    for metric, title in titles.items():
        figures = (one.before, one.after, one.uncertain, one.measured)
        before, after, uncertain, measured = (_load_text(metric, loads) for loads in figures)
        error = "-" if one.after is None or one.measured is None else _error_text(metric, one.after, one.measured)
        yield [one.edge, title, before, after, uncertain, measured, error]


def _load_text(metric: str, loads: LoadFigures | None) -> str:
    if loads is None:
        return "-"
    return _metric_text(metric, _metric_value(metric, loads))


def _error_text(metric: str, predicted: LoadFigures, measured: LoadFigures) -> str:
    return _metric_text(metric, abs(_metric_value(metric, measured) - _metric_value(metric, predicted)))


def _metric_value(metric: str, loads: LoadFigures) -> float:
    return loads.match_seconds if metric == "match" else loads.input if metric == "input" else loads.output


def _metric_text(metric: str, value: float) -> str:
    return f"{1000 * value:.3f} ms" if metric == "match" else f"{value:.4f}"
