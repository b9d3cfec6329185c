"""What a session does by its kind: its steps by phase, the commands of its batches, and what their outcomes mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from plimsoll.core.protocol.messages import Outcome, PublisherOutcome, SliceOutcome
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.execute import batches, executor
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.kinds import (
    cluster_session,
    lookup_unload,
    parent_session,
    publisher_session,
    slice_session,
    split_session,
)
from plimsoll.core.session.request import lifecycle, negotiation, shuffle_plan
from plimsoll.core.session.state import MOVING_PHASES, Phase, Session, SessionKind

SessionStep = Callable[[EngineContext, SessionRequest, Session], Session]


PARENT_STEPS: Final[dict[Phase, SessionStep]] = {
    "Requested": lifecycle.step_requested,
    "Negotiating": lifecycle.step_negotiating,
    "Sampling": lifecycle.step_sampling,
    "Planned": lifecycle.step_planned,
    "Preparing": parent_session.step_moving,
    "Draining": parent_session.step_moving,
    "Stabilizing": parent_session.step_stabilizing,
}
PAIR_STEPS: Final[dict[Phase, SessionStep]] = {
    **PARENT_STEPS,
    "Preparing": executor.step_moving,
    "Cutting": executor.step_moving,
    "Draining": executor.step_moving,
    "Stabilizing": executor.step_stabilizing,
}
STEPS: Final[dict[SessionKind, dict[Phase, SessionStep]]] = {
    "move": PAIR_STEPS,
    "balance": {**PAIR_STEPS, "Negotiating": negotiation.step_negotiating},
    "drain": PARENT_STEPS,
    "spread": PARENT_STEPS,
    "shuffle": {**PARENT_STEPS, "Negotiating": shuffle_plan.step_negotiating},
    "rebalance": {**PARENT_STEPS, "Negotiating": shuffle_plan.step_negotiating},
    "split": {"Requested": split_session.step_requested, "Preparing": split_session.step_moving},
    "publishers": {
        "Requested": lifecycle.step_requested,
        "Negotiating": publisher_session.step_negotiating,
        "Sampling": publisher_session.step_sampling,
        "Planned": lifecycle.step_planned,
        "Preparing": publisher_session.step_moving,
        "Stabilizing": publisher_session.step_stabilizing,
    },
    "slices": {
        "Requested": lifecycle.step_requested,
        "Negotiating": slice_session.step_negotiating,
        "Sampling": slice_session.step_sampling,
        "Planned": lifecycle.step_planned,
        "Preparing": slice_session.step_moving,
        "Stabilizing": slice_session.step_stabilizing,
    },
    "clusters": {
        "Requested": cluster_session.step_requested,
        "Negotiating": cluster_session.step_negotiating,
        "Preparing": cluster_session.step_moving,
        "Draining": cluster_session.step_moving,
    },
}
"""The step of each kind of session in each phase that has one."""


def step(context: EngineContext, request: SessionRequest, session: Session, kind: SessionKind) -> Session:
    """The session after its next step; the same object if there is none. `kind`: what it is by the fleet of now."""
    if session.phase in MOVING_PHASES and lookup_unload.is_by_lookup(session):
        return lookup_unload.step_moving(context, request, session)
    return STEPS[kind][session.phase](context, request, session)


def send(context: EngineContext, request: SessionRequest, session: Session) -> None:
    """Send what follows from the state of a session that is not over, unless it was sent lately."""
    if lookup_unload.is_by_lookup(session):
        return  # its command is in the table of bundles
    if session.kind == "clusters":
        if session.phase in MOVING_PHASES:
            cluster_session.send_peer_loads(context, session)
    elif session.batch is not None and session.kind == "publishers":
        publisher_session.send_intent(context, session.batch)
    elif session.batch is not None and session.kind == "slices":
        slice_session.send_intent(context, request, session.batch)
    elif session.batch is not None:
        batches.send_intent(context, session.batch)
    elif session.is_parent and session.phase in MOVING_PHASES and session.verdict is None:
        parent_session.create_children(context, request, session)


def batch_after(context: EngineContext, batch: Batch, outcome: Outcome | PublisherOutcome | SliceOutcome) -> Batch:
    """The batch after an outcome of its head."""
    if isinstance(outcome, Outcome):
        return batches.receive_outcome(context, batch, outcome)
    if isinstance(outcome, SliceOutcome):
        return slice_session.receive_outcome(context, batch, outcome)
    return publisher_session.receive_outcome(context, batch, outcome)
