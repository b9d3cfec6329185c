"""What holds for every test: bounded time, repeatable examples, and no skip without a name and a reason."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is not a failing property: neither a deadline per example nor the check for slow examples. The runner's
# timeout bounds each test.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("dev", calm)
settings.register_profile("ci", calm, derandomize=True, database=None)
settings.register_profile("thorough", calm, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that this run cannot or should not do are skipped by name, not deselected out of sight."""
    asked_for_soak, asked_for_e2e = ("soak" in config.getoption("markexpr"), "e2e" in config.getoption("markexpr"))
    for item in items:
        if item.get_closest_marker("cluster") and not os.environ.get("KUBECONFIG"):
            item.add_marker(pytest.mark.skip(reason="needs a Kubernetes cluster: KUBECONFIG is not set"))
        if item.get_closest_marker("soak") and not asked_for_soak:
            item.add_marker(pytest.mark.skip(reason="runs for minutes: only with `-m soak`"))
        if item.get_closest_marker("e2e") and not asked_for_e2e:
            item.add_marker(pytest.mark.skip(reason="runs a release in a cluster for minutes: only with `make e2e`"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.section(f"{len(skipped)} skipped, and why")
    for report in sorted(skipped, key=lambda report: report.nodeid):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.line(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")
