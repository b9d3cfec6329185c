"""Write the chart's Grafana dashboards from scripts/dashboards/; `--check` only says which differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from dashboards.datasets import DATASETS
from dashboards.fleet import FLEET
from dashboards.operator import OPERATOR
from dashboards.sessions import SESSIONS
from dashboards.telemetry import TELEMETRY

FOLDER: Final = Path(__file__).resolve().parents[1] / "helm" / "plimsoll" / "files" / "dashboards"
DASHBOARDS: Final = {
    "fleet": FLEET,
    "sessions": SESSIONS,
    "telemetry": TELEMETRY,
    "operator": OPERATOR,
    "datasets": DATASETS,
}


def main() -> int:
    """Write, or with `--check` compare."""
    is_check, different = "--check" in sys.argv[1:], []
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, dashboard in DASHBOARDS.items():
        path, text = FOLDER / f"{name}.json", json.dumps(dashboard.render(), indent=1) + "\n"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        different.append(path.name)
        if not is_check:
            path.write_text(text, encoding="utf-8")
    if is_check and different:
        print(f"differ from scripts/make_dashboards.py, run `make chart`: {', '.join(different)}", file=sys.stderr)
    return 1 if different and is_check else 0


if __name__ == "__main__":
    sys.exit(main())
