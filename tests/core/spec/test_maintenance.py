"""Cron fields and maintenance windows, held to a definition that looks at every minute."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from plimsoll.core.spec.cron import CronSchedule
from plimsoll.core.spec.maintenance import is_window_open, next_window_at, windows_close_at
from plimsoll.core.spec.quantities import Duration
from plimsoll.core.spec.types.cluster import MaintenanceWindow

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def window(schedule: str, duration: str = "1h") -> MaintenanceWindow:
    return MaintenanceWindow(name="w", schedule=schedule, duration=Duration.parse(duration))


# ---------------------------------------------------------------- the definition, minute by minute


def matches(field: str, value: int, low: int, names: tuple[str, ...] = ()) -> bool:
    def number(word: str) -> int:
        return int(word) if word.isdigit() else low + names.index(word.lower())

    for item in field.split(","):
        span, _, step = item.partition("/")
        every = int(step) if step else 1
        if span == "*":
            first, last = low, 10**9
        elif "-" in span:
            first, last = (number(word) for word in span.split("-"))
        else:
            first, last = number(span), 10**9 if step else number(span)
        if first <= value <= last and (value - first) % every == 0:
            return True
    return False


def begins(schedule: str, seconds: float) -> bool:
    """Whether something begins in this very minute."""
    minute, hour, day, month, weekday = schedule.split(" ")
    moment = datetime.fromtimestamp(seconds, UTC)
    of_week = moment.isoweekday() % 7
    by_day = matches(day, moment.day, 1)
    by_weekday = matches(weekday, of_week, 0, WEEKDAYS) or (of_week == 0 and matches(weekday, 7, 0, WEEKDAYS))
    restricts_both = day[0] != "*" and weekday[0] != "*"
    return (
        matches(minute, moment.minute, 0)
        and matches(hour, moment.hour, 0)
        and matches(month, moment.month, 1, MONTHS)
        and (by_day or by_weekday if restricts_both else by_day and by_weekday)
    )


@st.composite
def field(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = ()) -> str:
    def word(value: int) -> str:
        name = names[value - low] if value - low < len(names) else ""
        return draw(st.sampled_from([name, name.upper(), str(value)])) if name else str(value)

    items = []
    for _ in range(draw(st.integers(1, 2))):
        span = "*"
        if draw(st.booleans()):
            first = draw(st.integers(low, high))
            last = draw(st.integers(first, high))
            span = word(first) if draw(st.booleans()) else f"{word(first)}-{word(last)}"
        items.append(span + draw(st.sampled_from(["", "", "/2", "/5", "/17"])))
    return ",".join(items)


schedules = st.tuples(
    field(0, 59), field(0, 23), field(1, 28), field(1, 12, MONTHS), field(0, 7, WEEKDAYS)
).map(" ".join)  # fmt: skip
moments = st.integers(int(at("2023-12-20")), int(at("2028-03-10"))).map(float)


@settings(max_examples=examples(150), deadline=None)
@given(schedules, moments, st.integers(1, 3 * 24 * 60))
def test_a_window_is_open_from_each_minute_that_matches_for_its_duration(schedule, now, minutes):
    length = 60.0 * minutes
    this_minute = now - now % 60
    starts = [s for s in (this_minute - 60 * back for back in range(minutes + 1)) if begins(schedule, s)]
    open_now = any(start <= now < start + length for start in starts)
    one = [window(schedule, f"{minutes}m")]
    assert is_window_open(one, now) == open_now
    assert windows_close_at(one, now) == (max(starts) + length if open_now else None)


@settings(max_examples=examples(150), deadline=None)
@given(schedules, moments)
def test_it_opens_next_at_the_first_minute_that_matches(schedule, now):
    found = CronSchedule.parse(schedule).next(now)
    assert found > now
    assert begins(schedule, found)
    first = now - now % 60 + 60
    looked_at = min(int((found - first) // 60), 3 * 24 * 60)
    assert not any(begins(schedule, first + 60 * ahead) for ahead in range(looked_at))
    before = found - 60 * looked_at
    assert not any(begins(schedule, s) for s in (before + 60 * n for n in range(looked_at)) if s > now)


# ---------------------------------------------------------------- cases that people know


@pytest.mark.parametrize(
    ("schedule", "now", "then"),
    [
        ("0 2 * * 6", "2026-11-20 12:00", "2026-11-21 02:00"),  # a Saturday
        ("0 2 * * sat", "2026-11-21 02:00", "2026-11-28 02:00"),  # after now
        ("0 2 * * 7", "2026-11-21 02:00", "2026-11-22 02:00"),  # 7 is Sunday, too
        ("*/15 * * * *", "2026-11-20 12:01", "2026-11-20 12:15"),
        ("5/20 * * * *", "2026-11-20 12:26", "2026-11-20 12:45"),
        ("0 0 13 * 5", "2026-11-13 00:00", "2026-11-20 00:00"),  # the 13th, or a Friday
        ("0 0 29 2 *", "2096-03-01 00:00", "2104-02-29 00:00"),  # 2100 is no leap year
        ("30 23 31 12 *", "2026-12-31 23:30", "2027-12-31 23:30"),
        ("0 22-23,0 * JAN-mar 1-5", "2026-04-01 00:00", "2027-01-01 00:00"),
    ],
)
def test_when_it_opens_next(schedule, now, then):
    assert shown(CronSchedule.parse(schedule).next(at(now))) == then


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "five cron fields"),
        ("* * * *", "five cron fields"),
        ("* * * * * *", "five cron fields"),
        ("60 * * * *", "five cron fields"),
        ("* 24 * * *", "five cron fields"),
        ("* * 0 * *", "five cron fields"),
        ("* * * 13 *", "five cron fields"),
        ("* * * * 8", "five cron fields"),
        ("*/0 * * * *", "five cron fields"),
        ("@daily", "five cron fields"),
        ("* * * * mo", "five cron fields"),
        ("0  2 * * *", "five cron fields"),
        ("30-10 * * * *", "minute that goes from 30 back to 10"),
        ("* * * * fri-mon", "day of the week that goes from fri back to mon"),
        ("0 0 30 2 *", "no month of it has a day 30"),
        ("0 0 31 apr,jun *", "no month of it has a day 31"),
    ],
)
def test_what_is_no_schedule(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        CronSchedule.parse(text)


def test_an_impossible_day_is_no_fault_beside_a_day_of_the_week():
    assert shown(CronSchedule.parse("0 0 30 2 1").next(at("2026-11-20 00:00"))) == "2027-02-01 00:00"


def test_without_windows_balancing_is_always_allowed():
    assert is_window_open([], 5.0)
    assert next_window_at([], 5.0) == 5.0
    assert windows_close_at([], 5.0) is None


def test_a_window_is_open_at_its_beginning_and_not_at_its_end():
    one, begin = [window("0 2 * * *", "90m")], at("2026-11-20 02:00")
    assert [is_window_open(one, begin + seconds) for seconds in (-0.001, 0.0, 5399.999, 5400.0)] == [
        False,
        True,
        True,
        False,
    ]
    assert next_window_at(one, begin - 60) == begin
    assert next_window_at(one, begin + 60) == begin + 60
    assert next_window_at(one, begin + 5400) == begin + 86_400


def test_of_several_windows_the_first_to_open_and_the_last_to_close_count():
    two, day = [window("0 2 * * *", "2h"), window("0 3 * * *", "30m")], at("2026-11-20")
    assert windows_close_at(two, day + 3.1 * 3600) == day + 4 * 3600
    assert next_window_at(two, day + 23 * 3600) == day + 26 * 3600


def test_a_window_may_be_open_for_longer_than_until_it_opens_again():
    one, day = [window("0 */6 * * *", "31h")], at("2026-11-20")
    assert all(is_window_open(one, day + hour * 3600) for hour in range(48))
    assert windows_close_at(one, day + 3600) == day + 31 * 3600
