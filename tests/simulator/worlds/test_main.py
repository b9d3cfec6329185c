"""The program behind `plimsoll simulate`: JSON in, JSON out, problems as text."""

import json
import subprocess
import sys


def asked(documents, world):
    return {"documents": documents, "world": world, "policies": ["none"], "seed": 1}


def run(question):
    done = subprocess.run(
        [sys.executable, "-m", "plimsoll.simulator.worlds"], input=json.dumps(question), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_rows_come_back(documents, world):
    (row,) = run(asked(documents, world))["rows"]
    assert row["policy"] == "none"
    assert set(row["loads"]) == {"e1", "e2"}


def test_problems_come_back(documents, world):
    world["subscribers"][0]["edge"] = "e9"
    assert "e9 is no edge" in run(asked(documents, world))["problems"][0]["found"]
    documents[1]["spec"]["cpu"] = "fast"
    (problem,) = run(asked(documents, world))["problems"]
    assert (problem["document"], problem["path"]) == (1, ["spec", "cpu"])
