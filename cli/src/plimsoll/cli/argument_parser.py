"""The argument parser of `plimsoll`: it names what was probably meant, and takes global options in any place."""

from __future__ import annotations

import argparse
import difflib
import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from plimsoll.core.printable import printable

CommandFunction = Callable[[argparse.Namespace], int]
GLOBAL_OPTIONS = (
    (("--context",), "a context, a local fleet, or a context of the kubeconfig: `plimsoll context list` shows them"),
    (("--fleet",), "local fleet; default: $PLIMSOLL_FLEET, or the only one"),
    (("-n", "--namespace"), "Kubernetes namespace"),
)
"""Their flags and help. They select a fleet, before the command or behind it."""


class ArgumentParser(argparse.ArgumentParser):
    """Its errors quote arguments, as printable text; the parsers of its commands are of this class, too."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))

    def parse_args(  # type: ignore[override]  # with a namespace of the caller it would be generic, which nothing needs
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """The arguments; the options of `GLOBAL_OPTIONS` are None where they were left out."""
        if args and args[0].startswith("-"):
            self._check_first_option(args[0])
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            chosen: ArgumentParser = getattr(options, "chosen", self)
            chosen.error(f"unrecognized arguments: {' '.join(unknown)}.{chosen.option_hint(unknown[0])}")
        for flags, _ in GLOBAL_OPTIONS:
            name = flags[-1].lstrip("-")
            setattr(options, name, getattr(options, name, None))
        return options

    def option_hint(self, word: str) -> str:
        """What was probably meant by an unknown option; empty if that cannot be told."""
        return nearest_hint(word.partition("=")[0], self._option_string_actions) if word.startswith("--") else ""

    def _check_first_option(self, word: str) -> None:
        """Name an unknown option in front of the command; argparse would take its value for the command."""
        name = word.partition("=")[0]
        if name.startswith("--") and not any(known.startswith(name) for known in self._option_string_actions):
            self.error(f"unrecognized arguments: {word}.{self.option_hint(word)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a wrong choice, with the one that is like it instead of all."""
        choices = None if action.choices is None else [str(each) for each in action.choices]
        if choices is not None and value not in choices and (hint := nearest_hint(str(value), choices)):
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}.{hint}")
        super()._check_value(action, value)


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """` Did you mean "get"?`, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f' Did you mean "{close[0]}"?' if close else ""


def lazy_command(module_name: str, function: str) -> Callable[[], CommandFunction]:
    """A command whose module is loaded when it is run."""

    def load() -> CommandFunction:
        found: CommandFunction = getattr(importlib.import_module(f"plimsoll.cli.commands.{module_name}"), function)
        return found

    return load
