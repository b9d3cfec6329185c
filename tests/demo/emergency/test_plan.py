"""The plan of the emergency scenario: the paper's counts, and the same plan for the same seed."""

from __future__ import annotations

from plimsoll.demo.emergency.plan import BY_NAME, CHANNELS, EmergencyScenario, area_of, emergency_plan, near


def test_counts_are_about_those_of_the_paper():
    plan = emergency_plan(EmergencyScenario(reports=500))
    held = [(want.channel, tuple(want.values(area_of(person.places[0][1])).items()))
            for person in plan.people for want in person.wants]  # fmt: skip
    assert (len(plan.people), len(plan.reports), len(plan.shelters), len(CHANNELS)) == (400, 500, 200, 7)
    assert 2000 < len(held) < 2500, "2,200 front-end subscriptions"
    assert 500 < len(set(held)) < 700, "610 back-end subscriptions"
    assert all(200 <= len(report.text) <= 700 for report in plan.reports)


def test_a_plan_follows_from_its_seed_and_people_do_not_depend_on_reports():
    one = emergency_plan(EmergencyScenario(people=20, reports=30))
    assert one == emergency_plan(EmergencyScenario(people=20, reports=30))
    assert one.people == emergency_plan(EmergencyScenario(people=20, reports=5)).people
    assert one.people != emergency_plan(EmergencyScenario(people=20, reports=30, seed=8)).people


def test_everybody_gives_a_value_to_every_parameter():
    for person in emergency_plan(EmergencyScenario(people=50, reports=1)).people:
        for want in person.wants:
            assert tuple(want.values(3)) == BY_NAME[want.channel].parameters


def test_near_is_an_area_and_those_around_it():
    assert near(0) == (0, 1, 4, 5)
    assert near(5) == (0, 1, 2, 4, 5, 6, 8, 9, 10)
    assert [area_of(place) for place in ((0.0, 0.0), (0.999, 0.0), (0.3, 0.6))] == [0, 3, 9]
