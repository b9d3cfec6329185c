"""What the repository says is about the product, is true on any machine, and leads somewhere."""

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


def test_the_map_of_the_code_is_true():
    """Each path named in ARCHITECTURE.md leads somewhere; a bare name of a module is beside the one named before it."""
    missing, folder = [], ROOT
    for named in re.findall(r"`([\w/.-]+(?:/|\.py))`", (ROOT / "ARCHITECTURE.md").read_text()):
        if named.startswith("src/") or named == "__init__.py":
            continue  # of every folder, of no one place
        path = ROOT / named if "/" in named else folder / named
        folder = path.parent if "/" in named else folder
        if not path.exists():
            missing.append(named)
    assert missing == []


def test_a_lock_or_manifest_names_no_private_host():
    suspicious = re.compile(
        r"https?://(?!(www\.)?(apache\.org|keepachangelog\.com|semver\.org|127\.0\.0\.1|localhost))"
    )
    settings = [path for path in FILES if path.suffix in {".lock", ".toml", ".cfg", ".ini"} or path.name == "Makefile"]
    assert [path for path in settings if suspicious.search((ROOT / path).read_text())] == []
