"""What holds for every test: bounded time, repeatable examples, and no skip without a name and a reason."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from tests.images import missing_image
from tests.leftovers import nothing_left_behind
from tests.patience import be_patient
from tests.sampling import mark_sweeps

# A busy machine is not a failing property: neither a deadline per example nor the check for slow examples. The runner's
# timeout bounds each test.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("quick", calm, max_examples=40)
settings.register_profile("dev", calm, max_examples=100)
settings.register_profile("quick-ci", calm, max_examples=40, derandomize=True, database=None)
settings.register_profile("ci", calm, max_examples=100, derandomize=True, database=None)
settings.register_profile("thorough", calm, max_examples=5000)
NO_SWEEPS = "not sweep"
"""The default of `-m`, in pyproject.toml."""


def pytest_configure(config: pytest.Config) -> None:
    """Properties try fewer examples where sweeps are left out."""
    profile = "ci" if os.environ.get("CI") else "dev"
    if config.getoption("markexpr") == NO_SWEEPS:
        profile = "quick-ci" if os.environ.get("CI") else "quick"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or profile)


@pytest.fixture(scope="session", autouse=True)
def patience() -> None:
    """The client library waits longer, in this process: the machine may be busy."""
    be_patient()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """What outlives a test fails it. Fixtures of a wider scope are there before it."""
    with nothing_left_behind():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that this run cannot or should not do are skipped by name, not deselected out of sight.

    Sweeps are marked first: they are deselected by their mark.
    """
    mark_sweeps(items)
    asked_for_e2e = "e2e" in config.getoption("markexpr")
    for item in items:
        if item.get_closest_marker("cluster") and not os.environ.get("KUBECONFIG"):
            item.add_marker(pytest.mark.skip(reason="needs a Kubernetes cluster: KUBECONFIG is not set"))
        elif why := missing_image(*(name for marker in item.iter_markers("images") for name in marker.args)):
            item.add_marker(pytest.mark.skip(reason=why))
        if item.get_closest_marker("e2e") and not asked_for_e2e:
            item.add_marker(pytest.mark.skip(reason="runs a release in a cluster for minutes: only with `make e2e`"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("markexpr") == NO_SWEEPS:
        terminalreporter.section("long sweeps are left to `make test-all`")
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.section(f"{len(skipped)} skipped, and why")
    for report in sorted(skipped, key=lambda report: report.nodeid):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.line(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")
