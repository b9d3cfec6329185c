"""Negotiation where a policy chooses: edges are asked in order, and the first that is free takes part.

PADRES 2006, 3.3. Whoever wanted the session has given the list; without one it has all edges of the cluster that carry
less. What each has answered stands in the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from plimsoll.core.detector import Detector, Memory
from plimsoll.core.policies.fleet import METRICS, RESOURCES, BrokerLoad, Metric
from plimsoll.core.policies.registry import Policy
from plimsoll.core.policies.steps import Action
from plimsoll.core.session import admission, loads, overview
from plimsoll.core.session.ending import ended_by
from plimsoll.core.session.record import Offer, Session, Verdict
from plimsoll.core.session.turn import Turn, because, enter
from plimsoll.core.session.values import Request
from plimsoll.core.spec.kinds import CandidateSpec

OFFERS_AT_MOST = 64
NO_ANSWER = "NoAnswer"
Agreement = tuple[Session, Verdict | None]


def negotiating(turn: Turn, request: Request, session: Session) -> Session:
    """Ask the next edge, or take its answer."""
    source = session.sources[0]
    if (why := admission.unready_source(turn, source)) is not None:
        return _waiting(turn, request, session, why)
    if not session.offers:
        return _listed(turn, request, session, source)
    offer = next((each for each in session.offers if not each.answer), None)
    if offer is None:
        return ended_by(turn, request, session, Verdict(reason="NobodyTakes", message=told(session.offers)))
    if (answer := _answer(turn, session, offer)) is None:
        return session
    if offer.asked_at is None and not answer[0]:
        asked = _with(session, offer, replace(offer, asked_at=turn.now))
        return replace(asked, targets=[offer.edge])  # nobody else asks it meanwhile
    session = _with(session, offer, replace(offer, answer=answer[0], message=answer[1]))
    if answer[0] != "OK":
        turn.tell(session, "Refused", f"{offer.edge}: {answer[0]}{': ' if answer[1] else ''}{answer[1]}")
        return replace(session, targets=[])
    return enter(session, "Sampling", turn.now)


def _waiting(turn: Turn, request: Request, session: Session, why: Verdict) -> Session:
    if turn.now < min(turn.waits_since(session) + turn.timings.negotiate, session.deadline_at):
        return because(session, why.reason, why.message)
    return ended_by(turn, request, session, why)


def _answer(turn: Turn, session: Session, offer: Offer) -> tuple[str, str] | None:
    """What an edge says to an offer; empty to let it be asked, None as long as it has not said."""
    if (why := admission.unready_target(turn, offer.edge)) is not None:
        return why.reason, why.message
    if offer.asked_at is None:
        if wait := admission.blocked_by(turn, session, {offer.edge}):
            return "BUSY", wait
        return "", ""
    answer = turn.states.answer_to(session, offer.edge, "ASK")
    if answer is not None:
        return answer.state, ""
    if turn.now >= min(offer.asked_at + loads.answer_seconds(turn), session.deadline_at):
        return NO_ANSWER, "it did not answer in time"
    return None


def _with(session: Session, old: Offer, new: Offer) -> Session:
    return replace(session, offers=[new if each is old else each for each in session.offers])


def accepted(session: Session) -> Offer | None:
    """The edge that said yes."""
    return next((each for each in session.offers if each.answer == "OK"), None)


def told(offers: Iterable[Offer]) -> str:
    """Answers in words, each edge once."""
    answers = {offer.edge: offer.answer for offer in offers}
    return "nobody takes: " + ", ".join(f"{edge} is {answer}" for edge, answer in answers.items())


# ---------------------------------------------------------------- whom to ask


def _listed(turn: Turn, request: Request, session: Session, source: str) -> Session:
    own, policy, able = loads.load(turn, source), loads.policy_of(turn, source), _able(turn, request, source)
    others = {name: load for name in able if (load := loads.load(turn, name)) is not None}
    if own is None or policy is None or (able and not others):
        message = f"the loads of {source} and of those who could take are not known"
        return _waiting(turn, request, session, Verdict(reason="NoLoad", message=message, again=True))
    wanted = [action for action in _actions(request, own, others, policy) if action.target in others]
    ranked = policy.ranked(own, wanted, others)[:OFFERS_AT_MOST]
    if not ranked:
        text = f"no edge of its cluster carries less than {source}, or can be asked"
        return ended_by(turn, request, session, Verdict(reason="NobodyTakes", message=text))
    offers = [
        Offer(edge=each.target, metric=each.metric, difference=round(each.difference, 4),
              overloaded=list(each.overloaded))
        for each in ranked
    ]  # fmt: skip
    return replace(because(session, "", ""), offers=offers)


def _able(turn: Turn, request: Request, source: str) -> list[str]:
    """Edges of the source's cluster that may be asked; the one that is named, if one is."""
    view, spec = turn.view, request.spec
    if view is None or source not in view.edges:
        return []
    named = None if spec.target is None else spec.target.name
    cluster = view.edges[source].cluster
    near = {cluster, overview.joined(turn, cluster) if spec.scope == "Global" else cluster}
    return [
        name for name, edge in sorted(view.edges.items())
        if name != source and edge.cluster in near and name not in spec.exclusions.brokers and named in (None, name)
    ]  # fmt: skip


def _actions(request: Request, own: BrokerLoad, others: Mapping[str, BrokerLoad], policy: Policy) -> list[Action]:
    """The broker-action list: as asked for, as detection has it, or else by difference."""
    if request.spec.candidates:
        return [_action(candidate) for candidate in request.spec.candidates]
    found = Detector(policy.parameters).run(own, others.values(), Memory(), _earliest(own, others))[1]
    return list(found.actions) or _by_difference(own, others, policy)


def _earliest(own: BrokerLoad, others: Mapping[str, BrokerLoad]) -> float:
    """Reports in the view are fresh, whatever the clocks of brokers say: none is older than this."""
    return min(each.time for each in (own, *others.values()))


def _action(candidate: CandidateSpec) -> Action:
    metric = next(each for each in METRICS if each == candidate.metric.lower())
    overloaded = tuple(each for each in RESOURCES if each.capitalize() in candidate.overloaded)
    return Action(candidate.name, metric, float(candidate.difference.value), overloaded)


def _by_difference(own: BrokerLoad, others: Mapping[str, BrokerLoad], policy: Policy) -> list[Action]:
    """People may want balance where no trigger does: whoever has less of anything, most of it first."""
    factor, least = policy.parameters.normalization_seconds, policy.parameters.balance_threshold

    def above(other: BrokerLoad, metric: Metric) -> float:
        return own.measures.of_metric(metric, factor) - other.measures.of_metric(metric, factor)

    found = [Action(name, metric, above(other, metric)) for name, other in others.items() for metric in METRICS]
    wanted = [action for action in found if action.difference > least]
    return sorted(wanted, key=lambda action: (-action.difference, METRICS.index(action.metric), action.target))
