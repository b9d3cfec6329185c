"""The mediator of the model is the product's engine: triggers become sessions, and sessions have ends with reasons."""

from tests.simulator.queueing.conftest import traffic_of

PADRES = {"type": "Padres", "detection": {"interval": "2s", "stabilizeFor": "5s"}}


def test_an_imbalance_becomes_sessions_that_end_it(world):
    fleet = world(PADRES)
    fleet.run(90.0)
    sessions = [one.session for one in fleet.mediator.objects.values()]
    assert any(session.counts()["moved"] for session in sessions)
    assert all(session.reason for session in sessions if session.is_over)
    inputs = [edge.reporter.last["input_utilization"] for edge in fleet.edges.values()]
    assert abs(inputs[0] - inputs[1]) <= 0.12


def test_without_a_policy_nothing_moves(world):
    fleet = world(None)
    fleet.run(60.0)
    assert fleet.mediator.objects == {}


def test_a_name_is_used_once(world):
    fleet = world(None)
    fields = {"scope": "Local", "source": {"name": "e11"}, "target": {"name": "e12"}, "select": {"count": 1}}
    fleet.mediator.create("one", fields)
    fleet.mediator.create("one", fields)
    assert len(fleet.mediator.objects) == 1


BAD = {"type": "Bad", "detection": {"interval": "2s"}, "bad": {"interval": "5s", "beta": "0"}}


def test_a_policy_for_the_whole_cluster_remembers_and_balances(world):
    """BAD 2019: while the deviation is above alpha, subscribers migrate. What it has seen is in its memory."""
    fleet = world(BAD)
    fleet.run(120.0)
    sessions = [one.session for one in fleet.mediator.objects.values()]
    assert any(session.kind == "rebalance" and session.counts()["moved"] for session in sessions)
    assert set(fleet.mediator.memories) == {"c1"}
    assert 3 <= list(fleet.owners().values()).count("e12") <= 7


def test_newcomers_go_where_the_policy_places_them(world):
    traffic = traffic_of(prefer="")
    fleet = world({**BAD, "bad": {"interval": "1h", "placement": "RoundRobin"}}, traffic)
    fleet.run(5.0)
    assert [fleet.owners()[f"s{n:02}"] for n in range(4)] == ["e11", "e12", "e11", "e12"]
