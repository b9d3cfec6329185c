"""Parts of a Grafana dashboard: queries, panels, variables, and a layout without overlaps.

The JSON is of schema version 39, which Grafana 11 writes; later versions migrate it when they load it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SCHEMA_VERSION: Final = 39
COLUMNS: Final = 24
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
NAMESPACE: Final = 'namespace=~"$namespace"'
Json = dict[str, Any]
Steps = Sequence[tuple[float | None, str]]
RED_ABOVE_0: Final[Steps] = ((None, "green"), (0.5, "red"))  # an increase of 1 may be a little less
RED_BELOW_1: Final[Steps] = ((None, "red"), (1, "green"))


@dataclass(frozen=True)
class Query:
    """An expression and the legend of its series. `is_limit`: drawn as a dashed line, such as the load line."""

    expr: str
    legend: str
    is_limit: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel. `unit` is a name of Grafana's units; `steps` are thresholds; `empty` is shown without data."""

    title: str
    text: str
    queries: Sequence[Query]
    kind: str = "timeseries"
    unit: str = "short"
    empty: str = "no data"
    steps: Steps = ((None, "green"),)
    mappings: Sequence[tuple[str, str, str]] = ()
    width: int = 8
    height: int = 8
    maximum: float | None = None
    is_stacked: bool = False

    def render(self, number: int, x: int, y: int) -> Json:
        """The JSON of the panel at a place of the grid."""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.text,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(index, query) for index, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": self._overrides()},
            "options": self._options(),
        }

    def _target(self, index: int, query: Query) -> Json:
        is_instant = self.kind in ("stat", "table", "bargauge")
        return {
            "refId": chr(ord("A") + index),
            "datasource": DATASOURCE,
            "expr": query.expr,
            "legendFormat": query.legend,
            "editorMode": "code",
            "range": not is_instant,
            "instant": is_instant,
            "format": "table" if self.kind == "table" else "time_series",
        }

    def _defaults(self) -> Json:
        steps = [{"value": value, "color": color} for value, color in self.steps]
        found: Json = {
            "unit": self.unit,
            "min": 0,
            "noValue": self.empty,
            "thresholds": {"mode": "absolute", "steps": steps},
            "color": {"mode": "palette-classic" if self.kind == "timeseries" else "thresholds"},
        }
        if self.maximum is not None:
            found["max"] = self.maximum
        if self.mappings:
            options = {
                value: {"text": text, "color": color, "index": index}
                for index, (value, text, color) in enumerate(self.mappings)
            }
            found["mappings"] = [{"type": "value", "options": options}]
        if self.kind == "timeseries":
            found["custom"] = {
                "drawStyle": "line",
                "lineWidth": 1,
                "fillOpacity": 20 if self.is_stacked else 0,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"mode": "normal" if self.is_stacked else "none", "group": "A"},
            }
        return found

    def _overrides(self) -> list[Json]:
        return [
            {
                "matcher": {"id": "byFrameRefID", "options": chr(ord("A") + index)},
                "properties": [
                    {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}},
                    {"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}},
                ],
            }
            for index, query in enumerate(self.queries)
            if query.is_limit
        ]

    def _options(self) -> Json:
        if self.kind == "timeseries":
            return {
                "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        if self.kind == "state-timeline":
            return {"mergeValues": True, "showValue": "auto", "legend": {"showLegend": True, "placement": "bottom"}}
        return {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value",
            "graphMode": "none",
            "textMode": "auto",
        }


@dataclass(frozen=True, kw_only=True)
class NumberPanel(Panel):
    """A small panel with the last value of each series as a number."""

    kind: str = "stat"
    width: int = 4
    height: int = 4


def firing(names: str) -> Panel:
    return NumberPanel(
        title="Alerts that fire",
        steps=RED_ABOVE_0,
        text="Alerts of the chart that fire now. docs/alerts.md says for each what to do.",
        queries=[
            Query(f'count(ALERTS{{alertname=~"Plimsoll({names}).*", alertstate="firing"}}) or vector(0)', "firing")
        ],
    )


@dataclass(frozen=True)
class Row:
    """A heading and the panels below it."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A whole dashboard. `uid` is part of its address and never changes."""

    uid: str
    title: str
    text: str
    variables: Sequence[Json]
    rows: Sequence[Row]
    links: Sequence[Json] = field(default_factory=tuple)

    def render(self) -> Json:
        """The JSON of the dashboard."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.text,
            "tags": ["plimsoll"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "timezone": "",
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "links": list(self.links),
            "annotations": {"list": []},
            "templating": {"list": [source_variable(), *self.variables]},
            "panels": list(_laid_out(self.rows)),
        }


def _laid_out(rows: Iterable[Row]) -> Iterable[Json]:
    """All panels from left to right and from top to bottom, each row of the dashboard below a heading."""
    number = y = 0
    for row in rows:
        number += 1
        yield {
            "id": number, "type": "row", "title": row.title, "collapsed": False, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
        }  # fmt: skip
        x, y, highest = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, highest = 0, y + highest, 0
            number += 1
            yield panel.render(number, x, y)
            x, highest = x + panel.width, max(highest, panel.height)
        y += highest


def source_variable() -> Json:
    """The Prometheus that all panels ask."""
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1}


def label_variable(name: str, label: str, metric: str) -> Json:
    """The values that a label of a metric has; all of them are chosen at first."""
    query = f"label_values({metric}, {name})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": "Variables"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def dashboard_links() -> Json:
    """A link to each other dashboard, with the variables and the time range of this one."""
    return {
        "type": "dashboards", "title": "Plimsoll", "tags": ["plimsoll"], "asDropdown": False, "includeVars": True,
        "keepTime": True, "targetBlank": False,
    }  # fmt: skip
