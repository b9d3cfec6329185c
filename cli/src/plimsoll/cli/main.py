"""Arguments and exit codes of `plimsoll`; each command is a function elsewhere.

Invalid input ends with a message that says where the fault is and what to do, never with a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version as installed_version
from typing import NoReturn

from plimsoll.cli import backend
from plimsoll.cli.argument_types import parse_count, parse_duration, parse_names, parse_share
from plimsoll.cli.commands import inspect, lifecycle, sessions
from plimsoll.cli.exit_codes import BAD_INPUT, CONFLICT, EXIT_CODE_HELP, FAILED, INTERRUPTED, OK, CommandError
from plimsoll.cli.output import FORMATS, print_error, print_error_lines, print_line
from plimsoll.core.printable import printable
from plimsoll.core.spec import API_VERSION, KINDS, InvalidResourcesError
from plimsoll.local.runtime import FleetChangeRefusedError
from plimsoll.local.storage.object_store import ObjectConflictError
from plimsoll.local.storage.state_files import StateWriteError

CommandFunction = Callable[[argparse.Namespace], int]
KIND_HELP = ", ".join(f"{kind.name} ({kind.short})" for kind in KINDS.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["demo"]:
        return _demo(given[1:])
    options = parser().parse_args(given)
    try:
        return _run(options.command, options)
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does: write nothing more to it, not even the flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED


def kubectl(arguments: Sequence[str] | None = None) -> int:
    """`kubectl plimsoll`: the same commands, at the API server."""
    os.environ.setdefault(backend.KUBERNETES_VARIABLE, "1")
    return main(arguments)


def _run(command: CommandFunction, options: argparse.Namespace) -> int:
    try:
        return command(options)
    except CommandError as error:
        print_error(f"plimsoll: {error}")
        if error.details:
            print_error_lines(error.details)
        return error.code
    except ObjectConflictError as error:
        print_error(f"plimsoll: {error}")
        return CONFLICT
    except StateWriteError as error:
        print_error(f"plimsoll: {error}, and repeat the command; nothing was started or changed")
        return FAILED
    except FleetChangeRefusedError as error:
        print_error_lines(str(error))
        print_error(f"plimsoll: {_count_text(len(error.problems), 'change')} refused; nothing was changed")
        return CONFLICT
    except InvalidResourcesError as error:
        print_error_lines(str(error))
        print_error(f"plimsoll: {_count_text(len(error.problems), 'problem')}; nothing was started or changed")
        return BAD_INPUT


class _ArgumentParser(argparse.ArgumentParser):
    """Its errors quote arguments; those of its commands are of this class, too."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    top = _ArgumentParser(
        prog="plimsoll",
        description="Run, watch and try a fleet of content-based publish/subscribe brokers, locally or on Kubernetes.",
        epilog=EXIT_CODE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common = _ArgumentParser(add_help=False)
    where = common.add_argument_group("fleet", "a fleet on this machine or in a Kubernetes cluster")
    where.add_argument("--fleet", metavar="NAME", help="local fleet; default: $PLIMSOLL_FLEET, or the only one")
    where.add_argument("-n", "--namespace", metavar="NAME", help="Kubernetes namespace")
    where.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, command: CommandFunction, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, parents=[common])
        made.set_defaults(command=command)
        return made

    _add_lifecycle_commands(add)
    _add_inspect_commands(add)
    _add_session_commands(add)
    _add_pubsub_commands(add)
    _add_conformance_command(commands.add_parser)
    commands.add_parser("demo", help="run the demonstration (`plimsoll demo --help`)")
    add("version", _version, "Print the version of this program and of the resources it supports.")
    return top


AddCommand = Callable[[str, CommandFunction, str], argparse.ArgumentParser]


def _add_lifecycle_commands(add: AddCommand) -> None:
    made = add("up", lifecycle.up, "Run a fleet from its resources until Ctrl-C, which shuts it down cleanly.")
    _add_file_options(made)
    made.add_argument("-d", "--detach", action="store_true", help="return when the fleet is ready and leave it running")
    made = add("down", lifecycle.down, "Stop a fleet: edges first, then heads.")
    made.add_argument("fleet_name", metavar="FLEET", nargs="?", help="name of the fleet")
    _add_file_options(
        add("apply", lifecycle.apply, "Create or change objects of a fleet, all of them or none; brokers follow.")
    )
    made = add("delete", lifecycle.delete, "Delete an object after its brokers have left.")
    made.add_argument("kind", metavar="KIND", help=KIND_HELP)
    made.add_argument("name", metavar="NAME")
    made = add("validate", lifecycle.validate, "Check resources without starting anything.")
    _add_file_options(made)
    made.add_argument("--ports", action="store_true", help="also check that the named ports are free on this machine")


def _add_inspect_commands(add: AddCommand) -> None:
    made = add("get", inspect.get, "Show objects.")
    made.add_argument("kind", metavar="KIND", help=f"all, {KIND_HELP}")
    made.add_argument("name", metavar="NAME", nargs="?")
    made.add_argument("-o", "--output", choices=FORMATS, default="table", help="default: table")
    made.add_argument("-w", "--watch", action="store_true", help="then print a line for each change")
    made = add("describe", inspect.describe, "Show everything about one object, events included.")
    made.add_argument("kind", metavar="KIND", help=KIND_HELP)
    made.add_argument("name", metavar="NAME")
    made = add("watch", inspect.watch, "Show the fleet as it changes; without a terminal, a line for each change.")
    made.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between redraws; default: 1")
    made = add("explain", inspect.explain, "Show the fields of a kind, or each move of a session and its reason.")
    made.add_argument("path", metavar="KIND[.FIELD...]|lbs/NAME", help="as in bc, bc.edges or lbs/one")
    made = add("events", inspect.events, "Show the events of the fleet's objects.")
    made.add_argument("-w", "--watch", action="store_true", help="then print new events as they happen")


def _add_session_commands(add: AddCommand) -> None:
    made = add("rebalance", sessions.rebalance, "Move live subscribers from one edge to another.")
    made.add_argument("--from", dest="source", metavar="EDGE", required=True, help="source edge")
    made.add_argument("--to", dest="target", metavar="EDGE", help="target edge; default: the edge with the least load")
    much = made.add_mutually_exclusive_group()
    much.add_argument(
        "--subscribers",
        type=parse_count,
        metavar="N",
        help="how many to move; default: the policy chooses",
    )
    much.add_argument(
        "--share",
        type=parse_share,
        metavar="P%",
        help="share of the edge's subscribers to move, such as 30%%",
    )
    _add_session_options(made)
    made = add("drain", sessions.drain, "Cordon an edge and move all its subscribers to other edges.")
    made.add_argument("edge", metavar="EDGE")
    _add_session_options(made)
    made = add("shuffle", sessions.shuffle, "Plan for all edges of a cluster at once, and move live subscribers.")
    made.add_argument("cluster", metavar="CLUSTER")
    made.add_argument(
        "--with", dest="other", metavar="CLUSTER", help="a second cluster, planned together with the first"
    )
    made.add_argument(
        "--moves",
        type=parse_count,
        metavar="N",
        help="highest number of moves; default: as few as needed",
    )
    _add_session_options(made)
    for name, command, text in (
        ("cordon", sessions.cordon, "Place new subscribers on other edges; those attached stay."),
        ("uncordon", sessions.uncordon, "Let an edge take new subscribers again."),
    ):
        add(name, command, text).add_argument("edge", metavar="EDGE")
    made = add("approve", sessions.approve, "Approve the plan of a session or a dry run, so that it is carried out.")
    made.add_argument("session", metavar="SESSION")
    made.add_argument("--hash", metavar="HASH", help="approve only the plan with this hash (or prefix of it)")
    _add_wait_options(made)
    made = add("stop", sessions.stop, "Stop a session after its current batch.")
    made.add_argument("session", metavar="SESSION")


def _add_session_options(made: argparse.ArgumentParser) -> None:
    made.add_argument("--dry-run", action="store_true", help="only plan; `plimsoll approve` then carries the plan out")
    made.add_argument("--approve", choices=("automatic", "manual"), default="automatic", help="default: automatic")
    made.add_argument("--handover", choices=("auto", "drain", "replay"), default="auto", help="default: auto")
    made.add_argument(
        "--exclude",
        type=parse_names,
        default=[],
        metavar="X,Y",
        help="subscribers and edges that stay",
    )
    made.add_argument("--deadline", type=parse_duration, metavar="TIME", help="time limit, such as 2m")
    made.add_argument("--name", metavar="NAME", help="name of the session; default: generated")
    _add_wait_options(made)


def _add_wait_options(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--wait", action=argparse.BooleanOptionalAction, default=True, help="print progress until the session ends"
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml", "name"),
        default="table",
        help="format of the result",
    )


def _add_pubsub_commands(add: AddCommand) -> None:
    made = add(
        "pub",
        _lazy_command("pubsub", "pub"),
        "Publish from arguments, or one publication for each line of standard input.",
    )
    made.add_argument(
        "attributes", metavar="NAME=VALUE", nargs="*", help="as in class=STOCK price=25.0; without any, read JSON lines"
    )
    made.add_argument("--payload", default="", help="text to send along; subscriptions do not match on it")
    made.add_argument(
        "--confirm",
        choices=("head", "edges"),
        default="head",
        help="wait until the head or the edges have it; default: head",
    )
    _add_connection_options(made)
    made = add("sub", _lazy_command("pubsub", "sub"), "Subscribe and print a line of JSON for each delivery.")
    made.add_argument(
        "subscriptions", metavar="SUBSCRIPTION", nargs="+", help="as in \"[class,=,'STOCK'],[price,>,25.0]\""
    )
    made.add_argument("--count", type=int, metavar="N", help="stop after N deliveries")
    made.add_argument("--seconds", type=float, metavar="S", help="stop after S seconds")
    made.add_argument("--full", action="store_true", help="also print publisher, origin, position and payload")
    _add_connection_options(made)


def _add_connection_options(made: argparse.ArgumentParser) -> None:
    made.add_argument("--cluster", metavar="NAME", help="whose head to connect to; default: the first one running")
    made.add_argument("--name", default="", help="name of the publisher or subscriber; default: generated")


def _add_conformance_command(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    text = "Try a client program against the protocol: which of its rules does it keep?"
    made = add_parser("conformance", help=text, description=text)
    made.set_defaults(command=_lazy_command("conformance", "conformance"))
    made.add_argument(
        "--profile", choices=("full", "simple"), default="full",
        help="simple: a client without ATTACH, after docs/simple-client.md; default: full",
    )  # fmt: skip
    made.add_argument(
        "--scenario",
        dest="scenarios",
        metavar="NAME",
        action="append",
        default=[],
        help="only this one, and others named",
    )
    made.add_argument("--list", action="store_true", help="print the scenarios, and play none")
    made.add_argument("--json", action="store_true", help="print JSON, with every frame")
    made.add_argument("--jobs", type=int, default=4, metavar="N", help="scenarios at a time; default: 4")
    made.add_argument(
        "--patience",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="factor on all deadlines, for a slow machine; default: 1",
    )
    made.add_argument(
        "program", metavar="COMMAND", nargs=argparse.REMAINDER,
        help="the client program and its arguments, behind --; {head} in them is replaced with the address of the head",
    )  # fmt: skip


def _lazy_command(module_name: str, name: str) -> CommandFunction:
    """A command whose module needs sockets, and is loaded when it is run."""

    def command(options: argparse.Namespace) -> int:
        module = importlib.import_module(f"plimsoll.cli.commands.{module_name}")
        return int(getattr(module, name)(options))

    return command


def _add_file_options(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "-f", "--file", dest="files", metavar="FILE", nargs="+", required=True, action="extend",
        help="YAML or JSON: files, folders, or - for standard input",
    )  # fmt: skip


def _version(options: argparse.Namespace) -> int:
    print_line(f"plimsoll {installed_version('plimsoll-operator')}, resources {API_VERSION}")
    return OK


def _demo(arguments: list[str]) -> int:
    try:
        module = importlib.import_module("plimsoll.demo")
    except ModuleNotFoundError as error:
        if error.name != "plimsoll.demo":
            print_error(f"plimsoll: the demo needs {error.name}: run make demo in a checkout")
        else:
            print_error("plimsoll: the demo is not part of the wheel: run make demo in a checkout")
        return FAILED
    return int(module.main(arguments))


def _count_text(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main())
