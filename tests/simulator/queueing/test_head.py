"""A head sends a publication once to each link behind which somebody takes it, and to no other."""

from tests.simulator.queueing.conftest import traffic_of

from plimsoll.simulator.queueing.traffic import Traffic, TrafficSubscriber


def test_edges_without_a_match_get_nothing(world):
    fleet = world()
    fleet.run(15.0)
    assert fleet.edges["e11"].meter.total["arrivals"] > 0
    assert fleet.edges["e12"].meter.total["arrivals"] == 0


def test_publications_cross_clusters_only_where_they_are_wanted(world):
    far = TrafficSubscriber("far", "c3", ("[topic,=,'a']",), 1.0, prefer="e31")
    fleet = world(traffic=Traffic(traffic_of(0).publishers, [far]), clusters=4)
    fleet.run(25.0)
    arrivals = {name: head.meter.total["arrivals"] for name, head in fleet.heads.items()}
    assert arrivals["c1-head"] > 0
    assert abs(arrivals["c2-head"] - arrivals["c1-head"] / 2) <= 30
    assert arrivals["c4-head"] == 0
    assert fleet.counts.delivered == fleet.edges["e31"].meter.served + fleet.edges["e31"].meter.total_served


def test_the_cover_goes_up_the_tree(world):
    """The routing tables are the product's: each head knows what is wanted behind each link."""
    far = TrafficSubscriber("far", "c3", ("[topic,=,'a']",), 1.0, prefer="e31")
    fleet = world(traffic=Traffic(traffic_of(0).publishers, [far]), clusters=3)
    fleet.run(2.0)
    assert fleet.heads["c1-head"].routes.match({"topic": "a"}) == {"c2-head"}
    assert fleet.heads["c2-head"].routes.match({"topic": "a"}) == {"c3-head"}
    assert fleet.heads["c3-head"].routes.match({"topic": "a"}) == {"e31"}
    assert fleet.heads["c1-head"].routes.match({"topic": "b"}) == set()
