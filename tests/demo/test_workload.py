"""The plan has the paper's mix, is the same for the same seed, and has the same meaning as text and as predicates."""

from collections import Counter

import pytest

from plimsoll.core import predicates
from plimsoll.core.verify import oracle
from plimsoll.demo import quotes, workload
from plimsoll.demo.workload import DemoScenario

QUOTES = quotes.load()
SCENARIO = DemoScenario()


@pytest.fixture(scope="module")
def plan():
    return workload.plan_workload(SCENARIO, QUOTES)


def test_forty_publishers_of_one_stock_each_and_two_thousand_subscribers(plan):
    assert len(plan.publishers) == 40
    assert len({publisher.symbol for publisher in plan.publishers}) == 40
    assert len({subscriber.name for subscriber in plan.subscribers}) == 2000


def test_templates_have_their_shares(plan):
    """PADRES 2006, 6.1: 20, 20, 20, 34, 5 and 1 per cent."""
    counts = Counter(subscriber.template for subscriber in plan.subscribers)
    assert counts == {
        "symbol-high": 400, "symbol-low": 400, "symbol-volume": 400, "symbol": 680, "volume": 100, "all": 20,
    }  # fmt: skip


@pytest.mark.parametrize("count", [1, 3, 7, 50, 99, 101])
def test_small_numbers_are_shared_out_to_the_last(count):
    plan = workload.plan_workload(DemoScenario(subscribers=count, publishers=5), QUOTES)
    counts = Counter(subscriber.template for subscriber in plan.subscribers)
    assert sum(counts.values()) == count
    for name, share, _, _ in workload.TEMPLATES:
        assert abs(counts[name] - count * share / 100) < 1


def test_a_quarter_of_the_subscriptions_matches_no_publication(plan):
    said = [quote.attributes() for publisher in plan.publishers for quote in publisher.quotes]
    zero = [subscriber for subscriber in plan.subscribers if subscriber.zero_traffic]
    assert len(zero) == 500
    filters = oracle.FilterTable()
    numbers = {filters.number(subscriber.predicates[::-1]) for subscriber in zero}
    assert not any(numbers.intersection(filters.matching(attributes)) for attributes in said)


def test_subscriptions_are_those_of_the_paper_with_values_of_the_stock_itself(plan):
    """PADRES 2006, 6.1: a symbol with a high above, a low below or a volume above; a symbol; a volume above; all."""
    thresholds = {"symbol-high": ("high", ">"), "symbol-low": ("low", "<"), "symbol-volume": ("volume", ">"),
                  "volume": ("volume", ">")}  # fmt: skip
    for subscriber in plan.subscribers:
        asked = {name: (operator, value) for name, operator, value in subscriber.predicates}
        assert asked.pop("class") == ("=", "STOCK")
        symbol = asked.pop("symbol", None)
        assert (symbol is not None) == subscriber.template.startswith("symbol")
        if subscriber.template in thresholds:
            name, operator = thresholds[subscriber.template]
            stocks = QUOTES if symbol is None else [str(symbol[1])]
            assert asked.pop(name) in {(operator, q.attributes()[name]) for stock in stocks for q in QUOTES[stock]}
        assert asked == {}


def test_the_text_says_what_the_predicates_say(plan):
    """The product reads the text, the audit the predicates."""
    said = [quotes_of[i].attributes() for quotes_of in QUOTES.values() for i in (0, len(quotes_of) // 2)]
    for subscriber in plan.subscribers[:300]:
        parsed = predicates.parse(subscriber.text)
        assert [parsed.matches(a) for a in said] == [oracle.matches(subscriber.predicates, a) for a in said]


def test_rates_and_times_lie_where_they_should(plan):
    for publisher in plan.publishers:
        assert 0 < publisher.rate_per_minute <= 60 * SCENARIO.rate_factor
        assert 0 <= publisher.first_at <= publisher.interval_seconds
    times = [subscriber.joins_at for subscriber in plan.subscribers]
    assert times == sorted(times)
    assert times[0] >= SCENARIO.join_from * SCENARIO.seconds
    assert times[-1] <= SCENARIO.join_to * SCENARIO.seconds


def test_a_publisher_begins_again_after_its_last_day(plan):
    publisher = plan.publishers[0]
    days = len(publisher.quotes)
    assert publisher.quote(days + 3) == publisher.quote(3) == publisher.quotes[3]


def test_the_same_seed_gives_the_same_plan_and_another_another(plan):
    assert workload.plan_workload(DemoScenario(), QUOTES) == plan
    assert workload.plan_workload(DemoScenario(seed=7), QUOTES) != plan


def test_a_symbol_without_a_publisher_must_be_left():
    with pytest.raises(ValueError, match="at most 53 publishers"):
        workload.plan_workload(DemoScenario(publishers=54), QUOTES)


def test_join_factor_compares_with_the_paper():
    """1,000 s of joining in 25 s are 40 times as fast."""
    assert DemoScenario(seconds=50, join_from=0.1, join_to=0.6).join_factor == pytest.approx(40)


def test_half_of_the_publishers_double_their_rates_later():
    """PADRES 2006, 6.2. Nothing else of the plan changes."""
    stepped = workload.plan_workload(DemoScenario(step_at=0.5), QUOTES)
    faster = [one for one in stepped.publishers if one.factor == 2.0]
    assert len(faster) == 20
    assert {one.faster_at for one in faster} == {30.0}
    before = workload.plan_workload(DemoScenario(), QUOTES)
    assert stepped.subscribers == before.subscribers
    assert [one.rate_per_minute for one in stepped.publishers] == [one.rate_per_minute for one in before.publishers]


def test_what_is_left_of_an_interval_goes_by_faster_after_the_step():
    """Every 4 s until 10 s, then every 2 s: at 8 s, half of the next interval is over at the step."""
    one = workload.PlannedPublisher("p", "IBM-2004", 15.0, 0.0, (), faster_at=10.0, factor=2.0)
    assert [one.after(at) for at in (0.0, 4.0, 6.0, 8.0, 10.0, 11.0)] == [4.0, 8.0, 10.0, 11.0, 12.0, 13.0]
    assert workload.PlannedPublisher("p", "IBM-2004", 15.0, 0.0, ()).after(8.0) == 12.0
