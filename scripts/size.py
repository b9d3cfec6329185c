"""Lines of Python by room, beside those of an earlier revision: the last tag, or the one that is named."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = re.compile(r"(?:^|/)src/plimsoll/(\w+)/")
Sizes = dict[str, tuple[int, int]]
"""By room, lines and modules."""


def room_of(path: str) -> str:
    """The package of a module of the product, the room of a test, or else the folder."""
    if (found := PRODUCT.search(path)) is not None:
        return found[1]
    first, *rest = path.split("/")
    return f"tests/{rest[0]}" if first == "tests" and len(rest) > 1 else first


def sizes(counted: str) -> Sizes:
    """From lines as `git grep --count` prints them, `path:lines`, with the revision in front if one was asked for."""
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for line in counted.splitlines():
        *_, path, count = line.split(":")
        lines[room_of(path)] += int(count)
        modules[room_of(path)] += 1
    return {room: (lines[room], modules[room]) for room in lines}


def totals(found: Sizes) -> Sizes:
    """Of the product and of its tests."""
    summed: Sizes = {}
    for name, is_test in (("product", False), ("tests", True)):
        of = [each for room, each in found.items() if room.startswith("tests") == is_test]
        summed[f"all of {name}"] = (sum(lines for lines, _ in of), sum(modules for _, modules in of))
    return summed


def table(now: Sizes, before: Sizes, revision: str) -> str:
    """One row per room, the largest first, and the totals."""
    rows = [f"{'room':24}{'lines':>9}{'modules':>9}{revision[:14]:>16}{'change':>9}"]
    for found, earlier in ((now, before), (totals(now), totals(before))):
        for room in sorted(found.keys() | earlier.keys(), key=lambda each: (-found.get(each, (0, 0))[0], each)):
            lines, modules = found.get(room, (0, 0))
            was, _ = earlier.get(room, (0, 0))
            rows.append(f"{room:24}{lines:9,}{modules:9,}{was:16,}{lines - was:+9,}")
    return "\n".join(rows)


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    tags = git("tag", "--sort=-creatordate").split()
    revision = sys.argv[1] if len(sys.argv) > 1 else tags[0] if tags else "HEAD"
    counted = ("grep", "--count", "")
    before = git(*counted, revision, "--", "*.py")
    print(table(sizes(git(*counted, "--", "*.py")), sizes(before), revision))


if __name__ == "__main__":
    main()
