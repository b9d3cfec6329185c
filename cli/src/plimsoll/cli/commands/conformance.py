"""`plimsoll conformance`: try a client program against the protocol, scenario by scenario."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, OK, CommandError
from plimsoll.cli.output import print_line, print_lines, table
from plimsoll.conformance import (
    SCENARIOS,
    ChildClient,
    ChildClientError,
    Scenario,
    json_report,
    play_all,
    table_report,
)

COMMAND_NEEDED = "name the client program behind --, as in: plimsoll conformance -- ./my-client"


def conformance(options: argparse.Namespace) -> int:
    """Play the scenarios of a profile; the exit code is 0 only if the client keeps to all of them."""
    scenarios = select_scenarios(options.profile, options.scenarios)
    if options.list:
        rows = [(each.name, each.section, " ".join(sorted(each.profiles)), each.title) for each in scenarios]
        for line in table(("SCENARIO", "SECTION", "PROFILES", "TITLE"), rows):
            print_line(line)
        return OK
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        raise CommandError(BAD_INPUT, COMMAND_NEEDED)
    try:
        verdicts = list(play_all(scenarios, partial(ChildClient, command), max(1, options.jobs), options.patience))
    except ChildClientError as error:
        raise CommandError(BAD_INPUT, str(error)) from error
    print_lines(json_report(verdicts) if options.json else table_report(verdicts))
    return OK if all(verdict.is_kept for verdict in verdicts) else FAILED


def select_scenarios(profile: str, names: Sequence[str]) -> list[Scenario]:
    """Those of a profile, or those of it that are named."""
    found = [scenario for scenario in SCENARIOS if profile in scenario.profiles]
    if unknown := set(names) - {scenario.name for scenario in found}:
        text = f"profile {profile} has no scenario {sorted(unknown)[0]!r}; plimsoll conformance --list names them"
        raise CommandError(BAD_INPUT, text)
    return [scenario for scenario in found if not names or scenario.name in names]
