"""The plan of a run: who asks for what, where people are and go, which reports come, where shelters are.

Counts, channels and their periods are the paper's (BAD 2019, the emergency application). Ours, since it does not say: a
plane of 4 x 4 areas, near means an area and those around it, people gather around three places, and each goes to
another area up to twice. `Emergency of Type Near Me` is about the person's own area.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal

SIDE: Final = 4
AREAS: Final = range(SIDE * SIDE)
EVENTS: Final = range(8)
CHANNELS_EACH: Final = (1, 5)
SUBSCRIPTIONS_EACH: Final = (1, 3)
GATHERINGS: Final = ((0.2, 0.3), (0.7, 0.8), (0.8, 0.2))
DEVIATION: Final = 0.12

Place = tuple[float, float]
Reach = Literal["Anywhere", "Here", "Near"]


@dataclass(frozen=True)
class EmergencyChannel:
    """`reach`: where a report is for it to concern the parameter `location` or `area`; Anywhere: it has none."""

    name: str
    title: str
    parameters: tuple[str, ...]
    period_seconds: float
    reach: Reach
    shelters: bool = False

    @property
    def follows_people(self) -> bool:
        """Whether its parameter is the area in which a person is."""
        return "area" in self.parameters


CHANNELS: Final = (
    EmergencyChannel("type", "Emergency of Type", ("event",), 10, "Anywhere"),
    EmergencyChannel("location", "Emergency at Location", ("location",), 20, "Here"),
    EmergencyChannel("near", "Emergency Near Me", ("event", "area"), 10, "Near"),
    EmergencyChannel("type-near", "Emergency of Type Near Me", ("event", "area"), 10, "Here"),
    EmergencyChannel("type-location", "Emergency of Type at Location", ("event", "location"), 30, "Here"),
    EmergencyChannel("shelter-near", "Emergency of Type with Shelter Near Me", ("event", "area"), 10, "Near", True),
    EmergencyChannel("shelter-location", "Emergency of Type at Location with Shelter", ("event", "location"), 30,
                     "Here", True),
)  # fmt: skip
BY_NAME: Final = {each.name: each for each in CHANNELS}


@dataclass(frozen=True)
class Want:
    """What a person asks a channel for; None: the channel has no such parameter. The area is the person's."""

    channel: str
    event: int | None
    location: int | None

    def values(self, area: int) -> dict[str, int]:
        """The parameters, for a person who is in this area."""
        given = {"event": self.event, "location": self.location, "area": area}
        return {name: value for name in BY_NAME[self.channel].parameters if (value := given[name]) is not None}


@dataclass(frozen=True)
class Person:
    """`places`: where from which second on; the first one is where the person joins."""

    name: str
    places: tuple[tuple[float, Place], ...]
    wants: tuple[Want, ...]


@dataclass(frozen=True)
class Report:
    """A report of an emergency. `text`: its payload."""

    number: int
    at_seconds: float
    event: int
    area: int
    text: str


@dataclass(frozen=True)
class EmergencyScenario:
    """The size of a run. The paper: 400 people, 10,000 reports and 200 shelters in 1,800 s.

    `period_factor`: the paper's periods times this.
    """

    seconds: float = 120.0
    people: int = 400
    reports: int = 1000
    shelters: int = 200
    period_factor: float = 0.4
    seed: int = 7


@dataclass(frozen=True)
class CityPlan:
    """A plan. `shelters`: the areas of shelters, by number."""

    scenario: EmergencyScenario
    people: tuple[Person, ...]
    reports: tuple[Report, ...]
    shelters: tuple[int, ...]


def area_of(place: Place) -> int:
    """The area of a place in the unit square."""
    x, y = (min(int(each * SIDE), SIDE - 1) for each in place)
    return y * SIDE + x


def near(area: int) -> tuple[int, ...]:
    """An area and those around it."""
    y, x = divmod(area, SIDE)
    return tuple(other for other in AREAS if abs(other // SIDE - y) <= 1 and abs(other % SIDE - x) <= 1)


def emergency_plan(scenario: EmergencyScenario) -> CityPlan:
    """The plan of a seed. Reports come in the last three quarters of the run, when most people have joined."""
    people = tuple(_person(number, scenario) for number in range(scenario.people))
    drawn = random.Random(f"{scenario.seed} reports")  # noqa: S311  # a seeded plan, no secret
    times = sorted(drawn.uniform(scenario.seconds / 4, scenario.seconds) for _ in range(scenario.reports))
    reports = tuple(
        Report(number, at, drawn.choice(EVENTS), drawn.choice(AREAS), "!" * drawn.randint(200, 700))
        for number, at in enumerate(times)
    )
    drawn = random.Random(f"{scenario.seed} shelters")  # noqa: S311  # a seeded plan, no secret
    return CityPlan(scenario, people, reports, tuple(drawn.choice(AREAS) for _ in range(scenario.shelters)))


def _person(number: int, scenario: EmergencyScenario) -> Person:
    drawn = random.Random(f"{scenario.seed} person {number}")  # noqa: S311  # a seeded plan, no secret
    joins = drawn.uniform(0.0, scenario.seconds / 3)
    times = sorted(drawn.uniform(scenario.seconds / 2, scenario.seconds * 0.9) for _ in range(drawn.randint(0, 2)))
    places = tuple((at, _gathered(drawn)) for at in (joins, *times))
    wants = {
        Want(
            channel.name, drawn.choice(EVENTS) if "event" in channel.parameters else None,
            drawn.choice(AREAS) if "location" in channel.parameters else None,
        )
        for channel in drawn.sample(CHANNELS, drawn.randint(*CHANNELS_EACH))
        for _ in range(drawn.randint(*SUBSCRIPTIONS_EACH))
    }  # fmt: skip
    ordered = sorted(wants, key=lambda each: (each.channel, each.event or 0, each.location or 0))
    return Person(f"person-{number:03}", places, tuple(ordered))


def _gathered(drawn: random.Random) -> Place:
    x, y = drawn.choice(GATHERINGS)
    return _inside(drawn.gauss(x, DEVIATION)), _inside(drawn.gauss(y, DEVIATION))


def _inside(value: float) -> float:
    return min(max(value, 0.0), 0.999999)
