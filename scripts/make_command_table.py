"""Write the tables of docs/cli.md from the parser of `plimsoll`; `--check` only says whether they differ.

Run by `make commands`; a test fails if the page and the parser disagree.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from plimsoll.cli.parser import parser

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "cli.md"
BEGIN, END = "<!-- commands -->\n", "<!-- end of commands -->"


def commands(made: argparse.ArgumentParser, *words: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command with its parser, in the order of the help; one that only has actions is left out for them."""
    found = [action for action in made._actions if isinstance(action, argparse._SubParsersAction)]
    if not found:
        yield " ".join(words), made
    for action in found:
        for name, inner in action.choices.items():
            yield from commands(inner, *words, name)


def usage(name: str, made: argparse.ArgumentParser) -> str:
    """A command as it is written, its arguments before its options, without those that all commands have."""
    shared = {action for group in made._action_groups if group.title == "fleet" for action in group._group_actions}
    hidden = {action for action in made._actions if action.dest == "help" or action.help == argparse.SUPPRESS}
    own = [action for action in made._actions if action not in shared | hidden]
    options = [_option(action) for action in own if action.option_strings]
    return " ".join([name, *(_argument(action) for action in own if not action.option_strings), *options])


def _argument(action: argparse.Action) -> str:
    word = _value(action)
    forms = {"?": f"[{word}]", "*": f"[{word} ...]", "+": f"{word} ...", argparse.REMAINDER: f"[{word} ...]"}
    return forms.get(str(action.nargs), word)


def _option(action: argparse.Action) -> str:
    flag = action.option_strings[0]
    if isinstance(action, argparse.BooleanOptionalAction):
        return f"[{'|'.join(action.option_strings)}]"
    if action.nargs == 0:
        return f"[{flag}]"
    text = f"{flag} {_value(action)}{' ...' if action.nargs == '+' else ''}"
    return text if action.required else f"[{text}]"


def _value(action: argparse.Action) -> str:
    choices = "|".join(str(each) for each in action.choices or ())
    return str(action.metavar or choices or action.dest.upper())


def table() -> str:
    """A row for each command; a bar inside of a cell would end it."""
    rows = [(usage(name, made), str(made.description)) for name, made in commands(parser())]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| `{code}` | {text} |\n" for code, text in cells]
    return "".join(["| command | what it does |\n", "|---|---|\n", *lines])


def page() -> str:
    """docs/cli.md with its table replaced."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise ValueError(f"{PAGE.name} has no place for the table: write {BEGIN.strip()} and {END}")
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def main() -> int:
    """Write, or with `--check` compare."""
    if page() == PAGE.read_text(encoding="utf-8"):
        return 0
    if "--check" in sys.argv[1:]:
        print("docs/cli.md differs from what `make commands` writes", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
