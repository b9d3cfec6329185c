"""A survey over lost, repeated and late pages: what it asks for, and the rates and lists that come of it."""

from __future__ import annotations

import math

import pytest

from plimsoll.core.protocol import messages as msg
from plimsoll.mediator.world import traffic_survey
from plimsoll.mediator.world.traffic_survey import END, PAGE_POSITIONS, PAGES_AT_MOST, SurveyError, SurveyReader


def item(seq: int, at_seconds: float, publisher: str = "p", size: int = 10) -> msg.PublicationItem:
    return msg.PublicationItem(publisher, 1, seq, int(at_seconds * 1e6), {"n": seq}, size)


class FakeHead:
    """A log of these publications, one for each position from `first` on."""

    def __init__(self, log: list[msg.PublicationItem], first: int = 1, epoch: int = 5) -> None:
        self.log, self.first, self.epoch = log, first, epoch
        self.asked: list[int] = []

    def answer(self, request: msg.ListPublications) -> msg.PublicationPage:
        self.asked.append(request.after)
        last = self.first + len(self.log) - 1
        low = max(request.after + 1, self.first)
        high = min(low + PAGE_POSITIONS - 1, last)
        page = self.log[low - self.first : high - self.first + 1] if low <= last else []
        return msg.PublicationPage(request.id, self.epoch, self.first, last, max(high, request.after), page)


def read(head: FakeHead, over: float = 30.0) -> traffic_survey.SurveyedHead:
    reader, now = SurveyReader(["h"], [], over), 0.0
    while reader.waiting:
        for _, request in reader.requests(now):
            assert isinstance(request, msg.ListPublications)
            reader.take("h", head.answer(request))
        now += 0.1
        assert now < 60.0
    return reader.survey().heads["h"]


def test_rates_are_counted_by_the_numbers_of_publishers():
    log = sorted(
        [*(item(n, n * 0.1) for n in range(1, 201)), *(item(n, n * 2.0, "slow", 30) for n in range(1, 10))],
        key=lambda each: each.sent_us,
    )
    found = read(FakeHead(log))
    assert [(each.name, round(each.per_second, 6)) for each in found.publishers] == [("p", 10.0), ("slow", 0.5)]
    assert [each.payload_bytes for each in found.publishers] == [10, 30]
    assert (found.publications, round(found.seconds, 1), found.is_sampled) == (209, 19.9, False)
    assert [content["n"] for content in found.publishers[1].contents] == list(range(1, 10))


def test_only_the_seconds_asked_for_count():
    fast_since = [
        *(item(n, float(n)) for n in range(1, 1001)),
        *(item(1000 + n, 1000 + n * 0.1) for n in range(1, 301)),
    ]
    found = read(FakeHead(fast_since), over=10.0)
    assert [round(each.per_second, 3) for each in found.publishers] == [10.0]


def test_a_publisher_that_has_stopped_is_not_taken_to_go_on():
    log = sorted(
        [*(item(n, n * 0.1) for n in range(1, 21)), *(item(n, n * 0.5, "other") for n in range(1, 41))],
        key=lambda each: each.sent_us,
    )
    stopped, other = read(FakeHead(log)).publishers[1], read(FakeHead(log)).publishers[0]
    assert (stopped.name, other.name) == ("p", "other")
    assert stopped.per_second == pytest.approx(20 / 19.9)
    assert other.per_second == pytest.approx(2.0)


def test_one_publication_is_one_in_the_time_of_the_survey():
    log = [item(1, 0.0), *(item(n, n * 1.0, "other") for n in range(1, 11))]
    assert read(FakeHead(log)).publishers[1].per_second == pytest.approx(1 / 10)


def test_a_long_log_is_read_backwards_no_further_than_needed():
    head = FakeHead([item(n, n * 0.01) for n in range(1, 20_001)], first=1001)
    found = read(head, over=10.0)
    assert head.asked[:2] == [END, 21_000 - PAGE_POSITIONS]
    assert len(head.asked) == 1 + 4
    assert found.publishers[0].per_second == pytest.approx(100.0)


def test_a_log_too_long_to_be_read_is_sampled_evenly_over_the_time():
    head = FakeHead([item(n, n * 0.0001) for n in range(1, 300_001)])
    found = read(head, over=20.0)
    assert len(head.asked) <= 1 + PAGES_AT_MOST
    assert found.is_sampled
    assert found.seconds == pytest.approx(20.0, rel=0.2)
    assert found.publishers[0].per_second == pytest.approx(10_000, rel=1e-6)


def test_a_head_that_restarts_is_read_again():
    reader = SurveyReader(["h"], [], 900.0)
    old, new = FakeHead([item(n, n) for n in range(1, 1001)]), FakeHead([item(n, n) for n in range(1, 4)], epoch=6)
    now, heads = 0.0, iter([old, old, new, new, new])
    while reader.waiting:
        [(_, request)] = reader.requests(now)
        assert isinstance(request, msg.ListPublications)
        reader.take("h", next(heads).answer(request))
        now += 0.1
    assert reader.survey().heads["h"].publications == 3


def test_an_empty_log_is_no_publication():
    assert read(FakeHead([])).publishers == ()


# -- lists


def page(
    number: int, lists: dict[str, list[str]], after: str = "", skip: int = 0, epoch: int = 4
) -> msg.SubscriptionPage:
    items = [msg.SubscriptionListItem(name, texts) for name, texts in lists.items()]
    return msg.SubscriptionPage(number, epoch, items, after, skip)


def request_of(reader: SurveyReader, now: float) -> msg.ListSubscriptions:
    [(_, request)] = reader.requests(now)
    assert isinstance(request, msg.ListSubscriptions)
    return request


def test_what_is_not_answered_is_asked_for_again_and_counts_once():
    reader = SurveyReader([], ["e"], 30.0)
    first = request_of(reader, 0.0)
    assert list(reader.requests(0.4)) == []
    assert request_of(reader, 0.5) == first
    answer = page(first.id, {"s": ["x"]}, "s", 1)
    reader.take("e", answer)
    reader.take("e", answer)  # the repeated query was answered, too
    second = request_of(reader, 0.6)
    assert (second.start, second.skip, second.id) == ("s", 1, first.id + 1)
    reader.take("e", answer)
    reader.take("e", page(second.id, {"s": ["y"], "t": ["x"]}))
    assert reader.waiting == []
    assert reader.survey().subscribers == {"e": {"s": ("x", "y"), "t": ("x",)}}


def test_an_edge_that_restarts_is_read_again():
    reader = SurveyReader([], ["e"], 30.0)
    reader.take("e", page(request_of(reader, 0.0).id, {"s": ["x"]}, "t"))
    reader.take("e", page(request_of(reader, 1.0).id, {}, epoch=9))
    again = request_of(reader, 2.0)
    assert (again.start, again.skip) == ("", 0)
    reader.take("e", page(again.id, {"t": ["z"]}, epoch=9))
    assert reader.survey().subscribers == {"e": {"t": ("z",)}}


def test_pages_of_others_and_of_another_kind_change_nothing():
    reader = SurveyReader(["h"], ["e"], 30.0)
    numbers = {name: request.id for name, request in reader.requests(0.0)}
    reader.take("x", page(numbers["e"], {"s": ["x"]}))
    reader.take("h", page(numbers["h"], {"s": ["x"]}))
    assert reader.waiting == ["e", "h"]


def test_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(traffic_survey, "SUBSCRIPTIONS_AT_MOST", 2)
    reader = SurveyReader([], ["e"], 30.0)
    with pytest.raises(SurveyError, match="more than 2 subscriptions: name one --cluster"):
        reader.take("e", page(request_of(reader, 0.0).id, {"s": ["x", "y", "z"]}))


def test_a_survey_goes_through_json(surveyed):
    found = traffic_survey.decode_survey(data := traffic_survey.encode_survey(surveyed))
    assert found == surveyed
    assert data.isascii()
    odd = traffic_survey.SurveyedPublisher("p", 1.0, ({"x": math.nan, "y": "\u00fc\u202e", "z": True, "n": 1},), 0)
    survey = traffic_survey.TrafficSurvey({"h": traffic_survey.SurveyedHead((odd,), 1, 1.0)}, {})
    [again] = traffic_survey.decode_survey(traffic_survey.encode_survey(survey)).heads["h"].publishers
    [content] = again.contents
    assert math.isnan(float(content["x"]))
    assert (content["y"], content["z"], type(content["n"])) == ("\u00fc\u202e", True, int)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"heads": [], "subscribers": {}}', b"[" * 100_000, b"\xff"])
def test_what_is_no_survey_is_refused(data):
    with pytest.raises(SurveyError, match="not a survey"):
        traffic_survey.decode_survey(data)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400", "-1.0", "1e300"])
@pytest.mark.parametrize("field", ["per_second", "seconds", "round_trip_seconds", "clients"])
def test_a_number_that_nobody_can_reckon_with_is_no_survey(field: str, number: str):
    made = traffic_survey.TrafficSurvey(
        {"h": traffic_survey.SurveyedHead((traffic_survey.SurveyedPublisher("p", 7.5, ({"x": 1},), 0),), 1, 8.5)},
        {}, 9.5, 6,
    )  # fmt: skip
    before = {"per_second": "7.5", "seconds": "8.5", "round_trip_seconds": "9.5", "clients": "6"}[field]
    data = traffic_survey.encode_survey(made)
    changed = data.replace(f'"{field}": {before}'.encode(), f'"{field}": {number}'.encode())
    assert changed != data
    with pytest.raises(SurveyError, match="not a survey"):
        traffic_survey.decode_survey(changed)


def test_the_rate_of_a_publisher_with_odd_numbers_is_within_bounds():
    found = read(FakeHead([item(1, 1.0), msg.PublicationItem("p", 1, 2**62, 1_000_001, {"n": 1}, 1)]))
    assert (
        traffic_survey.decode_survey(traffic_survey.encode_survey(traffic_survey.TrafficSurvey({"h": found}, {})))
        .heads["h"]
        .publishers[0]
        .per_second
        <= 1e15
    )


def test_connections_of_clients_are_counted_at_the_edge_with_most():
    reader = SurveyReader([], ["e", "f"], 30.0)
    for name, request in reader.requests(0.0):
        links = (7, 7, 9) if name == "e" else (7, 0, 0)
        items = [msg.SubscriptionListItem(f"{name}{n}", ["x"], link) for n, link in enumerate(links)]
        reader.take(name, msg.SubscriptionPage(request.id, 4, items))
    assert reader.survey().clients == 2
