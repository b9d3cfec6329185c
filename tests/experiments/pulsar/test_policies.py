"""Policies on the same topics, small: every claim is judged by what was counted."""

from __future__ import annotations

from plimsoll.experiments.pulsar import policies


def test_a_small_run_judges_all_claims():
    result = policies.run(1, plan=policies.small())
    assert (len(result.runs), len(result.figures)) == (14, 6)
    held = {each.claim for each in result.claims if each.held}
    assert {"Every policy delivers all publications once", "A hot bundle alone at its edge is not shed",
            "A split relieves it"} <= held  # fmt: skip
    assert all(each.paper and each.ours for each in result.claims)
    assert all(row["delivered"] for row in result.plain()["runs"])


def test_claims_fail_where_nothing_is_split(monkeypatch):
    plain = policies.pulsar
    monkeypatch.setattr(policies, "pulsar", lambda bundles, seed, **own: plain(bundles, seed, **own | {
        "split": {"auto": False}}))  # fmt: skip
    result = policies.run(1, plan=policies.small())
    assert "A split relieves it" in {each.claim for each in result.claims if not each.held}


def test_traces_give_each_topic_its_subscribers_and_the_edges_their_usage():
    plan = policies.small()
    world = policies.traces(plan, 1)
    counts = {topic: sum(topic in each.topics for each in world.subscribers) for topic in world.rates}
    assert set(counts.values()) == {policies.SUBSCRIBERS_OF_A_TOPIC}
    assert round(sum(steps[0].per_second for steps in world.rates.values()), 6) == plan.per_second
    assert sum(len(steps) > 1 for steps in world.rates.values()) == plan.topics // 10
