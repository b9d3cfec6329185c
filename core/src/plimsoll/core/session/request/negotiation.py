"""Negotiation for a policy: edges are asked in order, and the first that is free takes part. PADRES 2006, 3.3.

The broker-action list comes with the request of a trigger; without one it has all edges of the cluster that carry less.
The session keeps the answer of each edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.detection import Detector, DetectorState
from plimsoll.core.policies.model.load import METRICS, BrokerLoad, Metric, named_metric, named_resources
from plimsoll.core.policies.model.plan import BrokerAction
from plimsoll.core.session import admission
from plimsoll.core.session.completion import end_attempt, end_by_verdict
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.session_plan import Offer
from plimsoll.core.session.state import NOTHING_TO_MOVE, TEMPORARY_STAYS, Session, SessionVerdict
from plimsoll.core.spec.kinds import CandidateSpec

OFFERS_AT_MOST = 64
NO_ANSWER = "NoAnswer"


def step_negotiating(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Ask the next edge, or take its answer."""
    source = session.sources[0]
    if (why := admission.unready_source(context, source)) is not None:
        return _wait_or_end(context, request, session, why)
    if not session.offers:
        return _with_offers(context, request, session, source)
    offer = next((each for each in session.offers if not each.answer), None)
    if offer is None and any(each.is_futile for each in session.offers):
        verdict = SessionVerdict(reason=NOTHING_TO_MOVE, message=refusals_text(session.offers))
        return end_attempt(context, request, session, "Succeeded", verdict)
    if offer is None:
        return end_by_verdict(
            context, request, session, SessionVerdict(reason="NobodyTakes", message=refusals_text(session.offers))
        )
    if (answer := _offer_answer(context, session, offer)) is None:
        return session
    if offer.asked_at is None and not answer[0]:
        asked = _with_offer(session, offer, replace(offer, asked_at=context.now))
        return replace(asked, targets=[offer.edge])  # as a target it is kept from other sessions while it is asked
    session = _with_offer(session, offer, replace(offer, answer=answer[0], message=answer[1]))
    if answer[0] != "OK":
        context.outbox.emit(session, "Refused", f"{offer.edge}: {answer[0]}{': ' if answer[1] else ''}{answer[1]}")
        return replace(session, targets=[])
    return session.entered("Sampling", context.now)


def _wait_or_end(context: EngineContext, request: SessionRequest, session: Session, why: SessionVerdict) -> Session:
    if context.now < min(context.waiting_since(session) + context.timings.negotiate, session.deadline_at):
        return session.because(why.reason, why.message)
    return end_by_verdict(context, request, session, why)


def _offer_answer(context: EngineContext, session: Session, offer: Offer) -> tuple[str, str] | None:
    """The answer to an offer and its message; two empty strings: ask the edge; None: it has not answered yet."""
    if (why := admission.unready_target(context, offer.edge)) is not None:
        return why.reason, why.message
    if offer.asked_at is None:
        if wait := admission.blocked_by(context, session, {offer.edge}):
            return "BUSY", wait
        return "", ""
    answer = context.reservations.answer_for(session, offer.edge, "ASK")
    if answer is not None:
        return answer.state, ""
    if context.now >= min(offer.asked_at + context.loads.answer_seconds, session.deadline_at):
        return NO_ANSWER, "it did not answer in time"
    return None


def _with_offer(session: Session, old: Offer, new: Offer) -> Session:
    return replace(session, offers=[new if each is old else each for each in session.offers])


def with_futile_offer(session: Session, why: str) -> Session:
    """The session with its accepted offer marked: by it no subscriber could go.

    One that could not go for a moment only, since subscribers had just been moved, is not marked: it may come to more.
    """
    offer = session.accepted_offer
    if offer is None:
        return session
    lasts = session.plan is None or not set(session.plan.rejected) & TEMPORARY_STAYS
    return _with_offer(session, offer, replace(offer, message=why, is_futile=lasts))


def refusals_text(offers: Iterable[Offer]) -> str:
    """All refusals in one line, each edge once; first why nothing could go to those that accepted."""
    offers = list(offers)
    if futile := [f"{each.edge}, {each.metric}: {each.message}" for each in offers if each.answer == "OK"]:
        refused = [f"{each.edge} is {each.answer}" for each in offers if each.answer != "OK"]
        return "; ".join(dict.fromkeys([*futile, *refused]))
    answers = {offer.edge: offer.answer for offer in offers}
    return "no edge accepts: " + ", ".join(f"{edge} is {answer}" for edge, answer in answers.items())


# ---------------------------------------------------------------- candidates


def _with_offers(context: EngineContext, request: SessionRequest, session: Session, source: str) -> Session:
    own, policy, able = (
        context.loads.current(source),
        context.loads.policy_of(source),
        _candidate_edges(context, request, source),
    )
    others = {name: load for name in able if (load := context.loads.current(name)) is not None}
    if own is None or policy is None or (able and not others):
        message = f"the loads of {source} and of its possible targets are not known"
        return _wait_or_end(context, request, session, SessionVerdict(reason="NoLoad", message=message, again=True))
    wanted = [action for action in _action_list(request, own, others, policy) if action.target in others]
    ranked = policy.ranked(own, wanted, others)[:OFFERS_AT_MOST]
    if not ranked:
        text = f"no edge of its cluster that can be asked carries less than {source}"
        return end_by_verdict(context, request, session, SessionVerdict(reason="NobodyTakes", message=text))
    offers = [
        Offer(edge=each.target, metric=each.metric, difference=round(each.difference, 4),
              overloaded=list(each.overloaded))
        for each in ranked
    ]  # fmt: skip
    return replace(session.because("", ""), offers=offers)


def _candidate_edges(context: EngineContext, request: SessionRequest, source: str) -> list[str]:
    """Edges near the source that may be asked: the named one, or those of its cluster and of a joined one."""
    fleet, spec = context.fleet, request.spec
    if source not in fleet.edges:
        return []
    named = None if spec.target is None else spec.target.name
    cluster = fleet.edges[source].cluster
    near = {cluster, context.table.joined_cluster(cluster) if spec.scope == "Global" else cluster}
    return [
        name for name, edge in sorted(fleet.edges.items())
        if name != source and edge.cluster in near and name not in spec.exclusions.brokers and named in (None, name)
    ]  # fmt: skip


def _action_list(
    request: SessionRequest, own: BrokerLoad, others: Mapping[str, BrokerLoad], policy: BalancingPolicy
) -> list[BrokerAction]:
    """The broker-action list: from the request, from detection, or else by difference."""
    if request.spec.candidates:
        named = (_action_of_candidate(candidate) for candidate in request.spec.candidates)
        return [action for action in named if action is not None]
    found = Detector(policy.parameters).run(own, others.values(), DetectorState(), _earliest_report(own, others))[1]
    return list(found.actions) or _actions_by_difference(own, others, policy)


def _earliest_report(own: BrokerLoad, others: Mapping[str, BrokerLoad]) -> float:
    """A time before all of these reports: so they are fresh, even if their brokers' clocks are wrong."""
    return min(each.time for each in (own, *others.values()))


def _action_of_candidate(candidate: CandidateSpec) -> BrokerAction | None:
    """The action of a candidate; None if its metric is of another policy."""
    metric = named_metric(_plain(candidate.metric))
    if metric is None:
        return None
    overloaded = named_resources(_plain(each) for each in candidate.overloaded)
    return BrokerAction(candidate.name, metric, float(candidate.difference.value), overloaded)


def _plain(name: str) -> str:
    """A name of a specification as policies and messages write it."""
    return name[:1].lower() + name[1:]


def _actions_by_difference(
    own: BrokerLoad, others: Mapping[str, BrokerLoad], policy: BalancingPolicy
) -> list[BrokerAction]:
    """Users may balance below the thresholds of triggers: edges with less of a metric, largest difference first."""
    factor, least = policy.parameters.normalization_seconds, policy.parameters.balance_threshold

    def above(other: BrokerLoad, metric: Metric) -> float:
        return own.measures.of_metric(metric, factor) - other.measures.of_metric(metric, factor)

    found = [BrokerAction(name, metric, above(other, metric)) for name, other in others.items() for metric in METRICS]
    wanted = [action for action in found if action.difference > least]
    return sorted(wanted, key=lambda action: (-action.difference, METRICS.index(action.metric), action.target))
