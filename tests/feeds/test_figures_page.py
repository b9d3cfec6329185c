"""The page of a recorder or driver: it lives at once, is ready with fresh figures, and tells them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plimsoll.feeds.config import RecorderFigures
from plimsoll.feeds.figures_page import READY_SECONDS, FiguresPage
from plimsoll.feeds.metrics import recorder_metrics
from plimsoll.telemetry.http_server import HttpRequest

FIGURES = RecorderFigures("/d", 7, 1, 3, 2_000_000, 12, 10, 2, 5, 1, 4, 900, ("a",), 6, 250_000)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def page(clock: Clock) -> Iterator[FiguresPage]:
    found = FiguresPage("tcp://127.0.0.1:*", clock)
    yield found
    found.close()


def ask(page: FiguresPage, path: str) -> tuple[int, str]:
    answer = page.answer(HttpRequest("GET", path))
    return answer.status.value, answer.body.decode()


def test_it_is_ready_while_its_figures_are_fresh(page: FiguresPage, clock: Clock) -> None:
    assert ask(page, "/livez")[0] == 200
    assert ask(page, "/readyz")[0] == 503
    assert ask(page, "/figures")[0] == 404
    page.update(b"{}", [])
    assert ask(page, "/readyz")[0] == 200
    assert ask(page, "/figures") == (200, "{}")
    clock.now += READY_SECONDS + 1
    status, why = ask(page, "/readyz")
    assert (status, why) == (503, "it has reported nothing for 61 s\n")


def test_it_has_the_metrics_of_its_last_figures(page: FiguresPage) -> None:
    page.update(b"{}", recorder_metrics({"stocks": FIGURES}))
    text = ask(page, "/metrics")[1]
    assert 'plimsoll_feed_publications_total{feed="stocks",outcome="dead_letter"} 2.0' in text
    assert 'plimsoll_feed_lag_seconds{feed="stocks"} 0.25' in text
    assert 'plimsoll_feed_waiting_rows{feed="stocks"} 6.0' in text
