"""`python -m plimsoll.simulator.worlds`: the program behind `plimsoll simulate`.

It reads one JSON object from standard input, `{"documents": [...], "world": {...}, "policies": [...], "seed": n}`, and
writes `{"rows": [...]}` or `{"problems": [...]}` to standard output. It reads no file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from plimsoll.core.spec import InvalidResourcesError, SourceDocument, parse
from plimsoll.simulator.worlds.comparison import compare, policy_faults
from plimsoll.simulator.worlds.world_spec import parse_world
from plimsoll.simulator.worlds.world_traffic import faults


def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a comparison, or what is wrong with the files."""
    try:
        world = parse_world(asked["world"])
        resources = parse([SourceDocument(each, "<world>") for each in asked["documents"]])
        if problems := [*faults(world, resources), *policy_faults(asked["policies"], world, resources)]:
            return {"problems": problems}
        return {"rows": compare(asked["documents"], world, asked["policies"], int(asked["seed"]))}
    except InvalidResourcesError as error:
        return {"problems": [str(error)]}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
