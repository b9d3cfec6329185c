"""The plan of the crisis world in processes: the text's bytes, in fewer messages, on a connection for each topic."""

from __future__ import annotations

import pytest

from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.core.protocol.publication_size import publication_bytes
from plimsoll.core.spec.brokers import head_name
from plimsoll.demo import crisis_tables as tables
from plimsoll.demo.crisis_workload import THINNING, plan_crisis
from plimsoll.demo.deadline_demo import DEADLINE_SCENARIO, SPEED
from plimsoll.demo.workload import PlannedPublisher

PLAN = plan_crisis(DEADLINE_SCENARIO)


def delivered_bytes(one: PlannedPublisher) -> int:
    head = head_name(tables.CLUSTER)
    return publication_bytes(head, one.name, one.quote(0).attributes(), one.payload_bytes) + PREFIX_BYTES


@pytest.mark.parametrize(("edge", "before", "after"), [("b1", 5.6, 8.56), ("b0", 3.52, 4.96), ("b2", 3.28, 4.56)])
def test_edges_are_to_send_what_the_tables_say_at_the_speed_of_the_run(edge: str, before: float, after: float):
    at_rest = in_burst = 0.0
    for one in PLAN.publishers:
        number = tables.number_of(one.symbol)
        if tables.GIVEN[number] == edge:
            megabits = 8e-6 * delivered_bytes(one) * tables.TOPICS[number].subscribers / one.interval_seconds
            at_rest += megabits
            in_burst += megabits * (one.factor if one.faster_at < DEADLINE_SCENARIO.seconds else 1.0)
    assert at_rest / SPEED == pytest.approx(before, rel=0.01)
    assert in_burst / SPEED == pytest.approx(after, rel=0.01)


def test_messages_are_larger_by_as_much_as_there_are_fewer():
    one = next(each for each in PLAN.publishers if each.name == "p8-0")
    assert delivered_bytes(one) == pytest.approx(THINNING * tables.TOPICS[8].size_bytes, abs=2)
    assert one.interval_seconds == pytest.approx(THINNING / tables.PER_SECOND / SPEED)


def test_topics_begin_where_figure_three_has_them_each_on_a_connection_of_its_own():
    assert {each.topics: each.prefer for each in PLAN.subscribers} == {
        (tables.topic_name(number),): edge for number, edge in tables.GIVEN.items()
    }
    for each in PLAN.subscribers:
        assert (each.connection,) == each.topics


def test_all_subscribers_of_a_topic_are_in_one_process():
    parts = [PLAN.subscribers_of(part, 2) for part in range(2)]
    assert sorted(each.name for part in parts for each in part) == sorted(each.name for each in PLAN.subscribers)
    topics = [{each.topics for each in part} for part in parts]
    assert not topics[0] & topics[1]
    assert all(topics)


def test_the_same_seed_is_the_same_plan():
    assert plan_crisis(DEADLINE_SCENARIO) == PLAN
