"""`python -m plimsoll.simulator.worlds`: the program behind `plimsoll simulate`.

It reads one JSON object from standard input, `{"documents": [...], "world": {...}, "policies": [...], "seed": n}`, and
writes `{"rows": [...]}` or `{"problems": [...]}` to standard output. It reads no file. A problem has `found`
and, if known, `remedy`, `subject`, `path`, and the number of its `document`; without one it is of the World.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from plimsoll.core.spec import InvalidResourcesError, SourceDocument, parse
from plimsoll.core.spec.problems import ResourceProblem
from plimsoll.simulator.worlds.comparison import compare, policy_faults
from plimsoll.simulator.worlds.world_spec import parse_world
from plimsoll.simulator.worlds.world_traffic import faults


def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a comparison, or what is wrong with the files."""
    try:
        world = parse_world(asked["world"])
        resources = parse([SourceDocument(each, str(at)) for at, each in enumerate(asked["documents"])])
        if found := [*faults(world, resources), *policy_faults(asked["policies"], world, resources)]:
            return {"problems": [{"found": each} for each in found]}
        return {"rows": compare(asked["documents"], world, asked["policies"], int(asked["seed"]))}
    except InvalidResourcesError as error:
        return {"problems": [_problem(each) for each in error.problems]}


def _problem(problem: ResourceProblem) -> dict[str, Any]:
    found = {"found": problem.found, "remedy": problem.remedy, "path": list(problem.path)}
    return {**found, "document": int(problem.file), "subject": problem.subject} if problem.file.isdigit() else found


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
