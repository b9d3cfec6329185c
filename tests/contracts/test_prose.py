"""The repository's texts are about the product, hold on any machine, and have working links."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SELF = Path(__file__).relative_to(ROOT)

# Each pattern with what is wrong about it. The start of a build environment is the one place that may look outside.
FOREIGN = {
    r"(?<![\w.-])/(work|tmp|root|home)/": "a path of one machine",
    r"\.\./shared/|(?<![\w/])(shared|prototypes)/": "a folder that a reader does not have",
    r"(?i)\bissue #?\d+|\bthe issue on\b": "a note that a reader cannot open",
    r"(?i)\b(chatgpt|claude|copilot|llm|language model|ai[- ]generated)\b": "how it was made, not what it is",
    r"\bTO" + r"DO\b|\bFIX" + r"ME\b|\bX" + r"XX\b": "an open end: finish it, or say what is missing and why",
}
ALLOWED = {
    (".ci/run", "a folder that a reader does not have"): "starts the build environment's cluster where there is one",
}


def tracked() -> list[Path]:
    """Every text file under version control, or about to be (new and not ignored)."""
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    files = [Path(name) for name in names if name and (ROOT / name).is_file()]
    return [path for path in files if b"\0" not in (ROOT / path).read_bytes()[:4096]]


FILES = tracked()
GENERATED = {
    Path("docs/mutants.md"), Path("docs/kill-matrix.md"), Path("docs/kill-matrix-bundles.md"),
    Path("docs/kill-matrix-publishers.md"), Path("docs/kill-matrix-durable.md"), Path("docs/reasons.md"),
}  # fmt: skip


@pytest.mark.parametrize("pattern", FOREIGN)
def test_the_project_speaks_of_itself(pattern: str):
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in FILES
        if path != SELF and (str(path), FOREIGN[pattern]) not in ALLOWED
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert found == [], FOREIGN[pattern]


@pytest.mark.parametrize("page", [path for path in FILES if path.suffix == ".md"], ids=str)
def test_links_between_pages_lead_somewhere(page: Path):
    prose = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in target]
    missing = [target for target in targets if not (ROOT / page.parent / target.partition("#")[0]).exists()]
    assert missing == []


def find(named: str) -> Path | None:
    """Where a path in a page leads: from the root, or inside `src/plimsoll/` if it begins with a package."""
    places = [ROOT / named, *ROOT.glob(f"*/src/plimsoll/{named}")]
    return next((path for path in places if path.exists()), None)


def missing_paths(page: Path) -> list[str]:
    """Paths that a page names and that do not exist; a bare module name is in the folder of the path before it."""
    missing, folder = [], ROOT
    for named in re.findall(r"`([\w/.-]+(?:/|\.py))`", (ROOT / page).read_text()):
        if named.startswith("src/") or named == "__init__.py":
            continue  # of every folder, of no one place
        path = find(named) if "/" in named else folder / named
        if path is None or not path.exists():
            missing.append(named)
        elif "/" in named:
            folder = path if path.is_dir() else path.parent
    return missing


def test_the_map_of_the_code_is_true():
    assert missing_paths(Path("ARCHITECTURE.md")) == []


def test_every_package_is_on_the_map():
    """Each package has a row in ARCHITECTURE.md: what is changed there, and where its tests are."""
    named = set(re.findall(r"`([\w/-]+)/`", (ROOT / "ARCHITECTURE.md").read_text()))
    held = {path.parent for path in ROOT.glob("*/src/plimsoll/**/__init__.py")}
    packages = {str(folder).partition("/src/plimsoll/")[2] for folder in held} - {"core"}
    assert packages - named == set(), "give these a row in ARCHITECTURE.md"


@pytest.mark.parametrize("page", [path for path in FILES if path.suffix == ".md" and path not in GENERATED], ids=str)
def test_paths_that_a_page_names_exist(page: Path):
    named = re.findall(r"`([\w.-]+/[\w/.-]+\.py)`", (ROOT / page).read_text())
    assert [path for path in named if find(path) is None] == []


def test_a_lock_or_manifest_names_no_private_host():
    suspicious = re.compile(
        r"https?://(?!(www\.)?(apache\.org|keepachangelog\.com|semver\.org|127\.0\.0\.1|localhost))"
    )
    settings = [path for path in FILES if path.suffix in {".lock", ".toml", ".cfg", ".ini"} or path.name == "Makefile"]
    assert [path for path in settings if suspicious.search((ROOT / path).read_text())] == []
