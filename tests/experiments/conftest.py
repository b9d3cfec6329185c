"""Quotes once, and a plan that is small enough for a test."""

import pytest
from msgspec import structs

from plimsoll.demo import quotes
from plimsoll.demo.workload import DemoScenario
from plimsoll.experiments.padres import local


@pytest.fixture(scope="session")
def streams() -> quotes.Quotes:
    return quotes.load()


@pytest.fixture
def scenario() -> DemoScenario:
    return structs.replace(local.SCENARIO, seconds=300.0, subscribers=120, publishers=12)
