"""Five cron fields in UTC, as in crontab(5): minute, hour, day of the month, month, day of the week.

A field is a list of numbers, ranges and `*`, each with an optional step; months and days of the week also have names.
If both days are restricted, either suffices; a field that begins with `*` does not restrict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAYS_LOOKED_AT = 366 * 41  # a 29th of February on a given day of the week may be forty years away
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
DAY_SECONDS = 86_400


@dataclass(frozen=True)
class _Field:
    """The syntax of one field: `value` is the pattern of a number or a name; `names` count from `low`."""

    title: str
    low: int
    high: int
    value: str
    names: tuple[str, ...] = ()

    @property
    def pattern(self) -> str:
        item = rf"(\*|{self.value}(-{self.value})?)(/[1-9][0-9]?)?"
        return rf"{item}(,{item})*"


_FIELDS = (
    _Field("minute", 0, 59, "[0-5]?[0-9]"),
    _Field("hour", 0, 23, "([01]?[0-9]|2[0-3])"),
    _Field("day of the month", 1, 31, "(0?[1-9]|[12][0-9]|3[01])"),
    _Field("month", 1, 12, f"(0?[1-9]|1[0-2]|(?i:{'|'.join(_MONTHS)}))", _MONTHS),
    _Field("day of the week", 0, 7, f"([0-7]|(?i:{'|'.join(_WEEKDAYS)}))", _WEEKDAYS),
)
CRON = " ".join(field.pattern for field in _FIELDS)


@dataclass(frozen=True)
class CronSchedule:
    """When something begins. `either`: one of the two days suffices. Times are seconds since 1970."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    @classmethod
    def parse(cls, text: str) -> CronSchedule:
        """Read five fields; ValueError says what is wrong with them."""
        if not re.fullmatch(CRON, text):
            raise ValueError("is not a schedule: write five cron fields, as '0 2 * * 6' for Saturdays at 02:00 UTC")
        words = text.split(" ")
        minutes, hours, days, months, weekdays = (
            set(_numbers(field, word)) for field, word in zip(_FIELDS, words, strict=True)
        )
        either = not words[2].startswith("*") and not words[4].startswith("*")
        if not either and all(min(days) > _LONGEST_MONTHS[month - 1] for month in months):
            raise ValueError(f"never comes: no month of it has a day {min(days)}")
        return cls(
            tuple(sorted(minutes)), tuple(sorted(hours)), frozenset(days), frozenset(months),
            frozenset(day % 7 for day in weekdays), either,
        )  # fmt: skip

    def last(self, now: float, within: float) -> float | None:
        """The latest beginning that is not after `now` and at most `within` seconds before it, or None."""
        today = datetime.fromtimestamp(now, UTC).date().toordinal()
        for back in range(int(within // DAY_SECONDS) + 2):
            found = max((at for at in self._on(today - back) if at <= now), default=None)
            if found is not None:
                return found if now - found <= within else None
        return None

    def next(self, now: float) -> float:
        """The first beginning after `now`."""
        today = datetime.fromtimestamp(now, UTC).date().toordinal()
        for ahead in range(_DAYS_LOOKED_AT):
            found = min((at for at in self._on(today + ahead) if at > now), default=None)
            if found is not None:
                return found
        raise AssertionError("a schedule that never comes is refused when it is read")

    def _on(self, ordinal: int) -> Iterator[float]:
        day = date.fromordinal(ordinal)
        if not self._has(day):
            return
        begin = (ordinal - _EPOCH) * DAY_SECONDS
        yield from (float(begin + hour * 3600 + minute * 60) for hour in self.hours for minute in self.minutes)

    def _has(self, day: date) -> bool:
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (by_day or by_weekday if self.either else by_day and by_weekday)


_EPOCH = date(1970, 1, 1).toordinal()


def _numbers(field: _Field, word: str) -> Iterator[int]:
    for item in word.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            low, high = field.low, field.high
        else:
            low = _number(field, first)
            high = _number(field, last) if last else field.high if step else low
        if low > high:
            raise ValueError(f"has a {field.title} that goes from {first} back to {last}: write two ranges")
        yield from range(low, high + 1, int(step or 1))


def _number(field: _Field, word: str) -> int:
    return int(word) if word.isdigit() else field.low + field.names.index(word.casefold())
