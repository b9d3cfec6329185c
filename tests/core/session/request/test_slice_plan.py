"""Plans of slices: what a policy or a request moves, what stays and why, and what is predicted."""

from __future__ import annotations

from typing import Any

from tests.core.session.model import spec_of

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceLoad
from plimsoll.core.session import EngineSettings, HeadView, SessionRequest
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.group_samples import GroupSample
from plimsoll.core.session.request.slice_plan import group_of, make_slice_plan, refusal, sample_refusal
from plimsoll.core.session.session_plan import SessionPlan

HEAD = HeadView("east-head", "east", 7)


def consumer(name: str, numbers: range, seconds: float = 0.01, **more: Any) -> ConsumerLoad:
    return ConsumerLoad(name, tuple(SliceLoad(n, 10.0, seconds) for n in numbers), **more)


def request(limits: dict[str, Any] | None = None, exclude: tuple[str, ...] = (), **slices: Any) -> SessionRequest:
    spec = spec_of(
        scope="Local", source={"name": "east"}, action="MoveSlices", slices={"group": "readings", **slices},
        exclusions={"subscribers": list(exclude)}, limits=limits or {},
    )  # fmt: skip
    return SessionRequest("s", "u", 1, spec)


def sample(*consumers: ConsumerLoad, balancing: str = "Rates") -> GroupSample:
    return GroupSample(7, balancing, True, consumers)


def plan(wanted: SessionRequest, found: GroupSample) -> SessionPlan:
    return make_slice_plan(EngineContext(1, EngineSettings()), wanted, HEAD, found)


def moves(made: SessionPlan) -> list[tuple[str, str, list[str]]]:
    return [(pair.source, pair.target, pair.members) for pair in made.pairs]


UNEVEN = sample(consumer("a", range(6)), consumer("b", range(6, 8)))


def test_the_policy_evens_out_and_both_loads_are_predicted():
    made = plan(request(), UNEVEN)
    assert moves(made) == [("a", "b", ["readings@@0", "readings@@1"])]
    assert made.policy == "Rates"
    found = {one.edge: (one.utilization_before, one.utilization_after, one.subscribers_after) for one in made.forecasts}
    assert found == {"a": (0.6, 0.4, 4), "b": (0.2, 0.4, 4)}
    assert made.moves[0].what == "slices 0, 1"
    assert made.moves[0].reason.startswith("a works 0.60 s a second")


def test_pairing_predicts_the_use_of_processes():
    found = sample(consumer("a", range(4), cpu=0.9), consumer("b", range(4, 8), cpu=0.1), balancing="Pairing")
    made = plan(request(), found)
    assert [one.utilization_before for one in made.forecasts] == [0.9, 0.1]
    assert made.metric == "usage"
    assert made.forecasts[0].utilization_after < 0.9


def test_named_slices_go_to_their_taker_and_those_that_are_not_there_stay():
    made = plan(request(giver="a", taker="b", numbers=[0, 7, 9]), UNEVEN)
    assert moves(made) == [("a", "b", ["readings@@0"])]
    assert made.rejected == {"NotThere": ["readings@@7", "readings@@9"]}


def test_a_giver_without_numbers_gives_all_to_those_with_the_least_cost():
    found = sample(consumer("a", range(3)), consumer("b", range(3, 5)), consumer("c", range(0)))
    made = plan(request(giver="a"), found)
    assert moves(made) == [("a", "c", ["readings@@0", "readings@@1"]), ("a", "b", ["readings@@2"])]


def test_the_excluded_stay_and_take_nothing():
    found = sample(consumer("a", range(3)), consumer("b", range(3, 5)), consumer("c", range(0)))
    made = plan(request(giver="a", exclude=("c", "readings@@1")), found)
    assert moves(made) == [("a", "b", ["readings@@0", "readings@@2"])]
    assert made.rejected == {"Excluded": ["readings@@1"]}


def test_a_limit_of_moves_holds():
    made = plan(request(limits={"maxMoves": 1}, giver="a"), UNEVEN)
    assert made.members == 1
    assert len(made.rejected["OverLimit"]) == 5


def test_where_none_takes_the_plan_is_empty():
    assert plan(request(giver="a"), sample(consumer("a", range(3)))).stop == "no other consumer takes slices"


def test_refusals_say_what_is_missing():
    context = EngineContext(1, EngineSettings())
    assert group_of(request()) == "east/readings"
    missing = refusal(context, request())
    assert missing is not None
    assert missing.reason == "NotFound"
    for found, wanted, reason in (
        (sample(balancing=""), request(), "NotFound"),
        (UNEVEN, request(giver="nobody"), "NotFound"),
        (sample(consumer("a", range(2)), balancing="None"), request(), "NoPolicy"),
    ):
        verdict = sample_refusal(wanted, found)
        assert verdict is not None
        assert verdict.reason == reason
    assert sample_refusal(request(giver="a", taker="b"), UNEVEN) is None
