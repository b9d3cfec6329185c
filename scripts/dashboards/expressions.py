"""Expressions of PromQL that several dashboards use: figures of this project in the chosen namespace."""

from __future__ import annotations

from dashboards.grafana import NAMESPACE


def figure(metric: str, more: str = "") -> str:
    """A figure as it is; `more`: further conditions on its labels, each with a comma before it."""
    return f"plimsoll_{metric}{{{NAMESPACE}{more}}}"


def rate_by(metric: str, by: str, more: str = "") -> str:
    """How fast a counter grows, per second, summed up by labels."""
    return f"sum by ({by}) (rate({figure(metric, more)}[$__rate_interval]))"
