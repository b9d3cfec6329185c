"""Arguments and exit codes of `plimsoll`; each command is a function elsewhere.

Whatever goes wrong by the fault of input ends with a message that says where and what to do, never with a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version as installed_version

from plimsoll.cli import balancing, lifecycle, places, reading
from plimsoll.cli.codes import BAD_INPUT, CONFLICT, FAILED, INTERRUPTED, MEANINGS, OK, CommandError
from plimsoll.cli.output import FORMATS, complain, say
from plimsoll.core.spec import API_VERSION, KINDS, InvalidResourcesError
from plimsoll.local.runtime import RefusedError
from plimsoll.local.store import ConflictError

Command = Callable[[argparse.Namespace], int]
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
        # Whoever read our output has had enough; nothing more can be said there, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED


def kubectl(arguments: Sequence[str] | None = None) -> int:
    """`kubectl plimsoll`: the same commands, at the API server."""
    os.environ.setdefault(places.KUBERNETES, "1")
    return main(arguments)


def _run(command: Command, options: argparse.Namespace) -> int:
    try:
        return command(options)
    except CommandError as error:
        complain(f"plimsoll: {error}")
        return error.code
    except ConflictError as error:
        complain(f"plimsoll: {error}")
        return CONFLICT
    except RefusedError as error:
        complain(f"{error}\nplimsoll: {_count(len(error.problems), 'change')} refused; nothing was changed")
        return CONFLICT
    except InvalidResourcesError as error:
        complain(f"{error}\nplimsoll: {_count(len(error.problems), 'problem')}; nothing was started or changed")
        return BAD_INPUT


def parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    top = argparse.ArgumentParser(
        prog="plimsoll",
        description="Run, watch and try a fleet of content-based publish/subscribe brokers, here or on Kubernetes.",
        epilog=MEANINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common = argparse.ArgumentParser(add_help=False)
    where = common.add_argument_group("where", "a fleet of this machine, or of a Kubernetes cluster")
    where.add_argument("--fleet", metavar="NAME", help="which fleet; default: $PLIMSOLL_FLEET, or the only one")
    where.add_argument("-n", "--namespace", metavar="NAME", help="at the API server: in this namespace")
    where.add_argument("--context", metavar="NAME", help="at the API server of this context of the kubeconfig")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, parents=[common])
        made.set_defaults(command=command)
        return made

    _add_lifecycle(add)
    _add_reading(add)
    _add_balancing(add)
    _add_messages(add)
    commands.add_parser("demo", help="run the demonstration (`plimsoll demo --help`)")
    add("version", _version, "Say the version of this program and of the resources that it knows.")
    return top


Add = Callable[[str, Command, str], argparse.ArgumentParser]


def _add_lifecycle(add: Add) -> None:
    made = add("up", lifecycle.up, "Run a fleet from its resources until Ctrl-C, which stops it in order.")
    _files(made)
    made.add_argument("-d", "--detach", action="store_true", help="return when the fleet is ready; it goes on running")
    made = add("down", lifecycle.down, "Stop a fleet: edges first, then heads.")
    made.add_argument("fleet_name", metavar="FLEET", nargs="?", help="which fleet")
    _files(add("apply", lifecycle.apply, "Change objects of a fleet; what runs follows. All changes or none."))
    made = add("delete", lifecycle.delete, "Delete an object; what runs for it leaves first.")
    made.add_argument("kind", metavar="KIND", help=KIND_HELP)
    made.add_argument("name", metavar="NAME")
    made = add("validate", lifecycle.validate, "Check resources without starting anything.")
    _files(made)
    made.add_argument("--ports", action="store_true", help="also try whether the named ports are free here")


def _add_reading(add: Add) -> None:
    made = add("get", reading.get, "Show objects.")
    made.add_argument("kind", metavar="KIND", help=f"all, {KIND_HELP}")
    made.add_argument("name", metavar="NAME", nargs="?")
    made.add_argument("-o", "--output", choices=FORMATS, default="table", help="default: table")
    made.add_argument("-w", "--watch", action="store_true", help="go on with a line for each change")
    made = add("describe", reading.describe, "Show everything about one object, events included.")
    made.add_argument("kind", metavar="KIND", help=KIND_HELP)
    made.add_argument("name", metavar="NAME")
    made = add("watch", reading.watch, "Show the fleet as it changes; without a terminal, a line for each change.")
    made.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between redraws; default: 1")
    made = add("explain", reading.explain, "Show the fields of a kind; or each move of a session, and why.")
    made.add_argument("path", metavar="KIND[.FIELD...]|lbs/NAME", help="as in bc, bc.edges or lbs/one")
    made = add("events", reading.events, "Show what happened to the fleet's objects.")
    made.add_argument("-w", "--watch", action="store_true", help="go on with what happens")


def _add_balancing(add: Add) -> None:
    made = add("rebalance", balancing.rebalance, "Move live subscribers from one edge to another.")
    made.add_argument("--from", dest="source", metavar="EDGE", required=True, help="who gives")
    made.add_argument("--to", dest="target", metavar="EDGE", help="who takes; default: the edge with the least load")
    much = made.add_mutually_exclusive_group()
    much.add_argument("--subscribers", type=balancing.count, metavar="N", help="how many; default: the policy chooses")
    much.add_argument("--share", type=balancing.share, metavar="P%", help="which share of the edge's, as 30%%")
    _session(made)
    made = add("drain", balancing.drain, "Cordon an edge, and move all its subscribers elsewhere.")
    made.add_argument("edge", metavar="EDGE")
    _session(made)
    made = add("shuffle", balancing.shuffle, "Plan for all edges of a cluster at once, and move live subscribers so.")
    made.add_argument("cluster", metavar="CLUSTER")
    made.add_argument("--with", dest="other", metavar="CLUSTER", help="another cluster: the edges of both, together")
    made.add_argument(
        "--moves", type=balancing.count, metavar="N", help="at most; default: as few as lower the highest"
    )
    _session(made)
    for name, command, text in (
        ("cordon", balancing.cordon, "Place newcomers elsewhere; who is at the edge stays."),
        ("uncordon", balancing.uncordon, "Let an edge take newcomers again."),
    ):
        add(name, command, text).add_argument("edge", metavar="EDGE")
    made = add("approve", balancing.approve, "Let the plan of a session run, or of a dry run.")
    made.add_argument("session", metavar="SESSION")
    made.add_argument("--hash", metavar="HASH", help="only if this is the plan's hash, or how it begins")
    _waiting(made)
    made = add("stop", balancing.stop, "Let a session begin nothing more.")
    made.add_argument("session", metavar="SESSION")


def _session(made: argparse.ArgumentParser) -> None:
    made.add_argument("--dry-run", action="store_true", help="plan only; `plimsoll approve` carries it out")
    made.add_argument("--approve", choices=("automatic", "manual"), default="automatic", help="default: automatic")
    made.add_argument("--handover", choices=("auto", "drain", "replay"), default="auto", help="default: auto")
    made.add_argument(
        "--exclude", type=balancing.names, default=[], metavar="X,Y", help="subscribers and edges to leave alone"
    )
    made.add_argument("--deadline", type=balancing.duration, metavar="TIME", help="when it must have ended, as 2m")
    made.add_argument("--name", metavar="NAME", help="of the session; default: a new one")
    _waiting(made)


def _waiting(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--wait", action=argparse.BooleanOptionalAction, default=True, help="say how it goes, until it has ended"
    )
    made.add_argument(
        "-o", "--output", choices=("table", "json", "yaml", "name"), default="table", help="of the session at its end"
    )


def _add_messages(add: Add) -> None:
    made = add("pub", _lazily("pub"), "Publish one publication from arguments, or one per line of standard input.")
    made.add_argument(
        "attributes", metavar="NAME=VALUE", nargs="*", help="as in class=STOCK price=25.0; none: read JSON lines"
    )
    made.add_argument("--payload", default="", help="text that goes along unseen by subscriptions")
    made.add_argument("--confirm", choices=("head", "edges"), default="head", help="who must have it; default: head")
    _connection(made)
    made = add("sub", _lazily("sub"), "Subscribe, and print a line of JSON for each delivery.")
    made.add_argument(
        "subscriptions", metavar="SUBSCRIPTION", nargs="+", help="as in \"[class,=,'STOCK'],[price,>,25.0]\""
    )
    made.add_argument("--count", type=int, metavar="N", help="end after so many deliveries")
    made.add_argument("--seconds", type=float, metavar="S", help="end after so many seconds")
    made.add_argument("--full", action="store_true", help="also print publisher, origin, position and payload")
    _connection(made)


def _connection(made: argparse.ArgumentParser) -> None:
    made.add_argument("--cluster", metavar="NAME", help="whose head to use; default: the first that runs")
    made.add_argument("--name", default="", help="name of the publisher or subscriber; default: a new one")


def _lazily(name: str) -> Command:
    """A command that needs the client library, which is loaded when it is run."""

    def command(options: argparse.Namespace) -> int:
        module = importlib.import_module("plimsoll.cli.messages")
        return int(getattr(module, name)(options))

    return command


def _files(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "-f", "--file", dest="files", metavar="FILE", nargs="+", required=True, action="extend",
        help="YAML or JSON: files, folders, or - for standard input",
    )  # fmt: skip


def _version(options: argparse.Namespace) -> int:
    say(f"plimsoll {installed_version('plimsoll-operator')}, resources {API_VERSION}")
    return OK


def _demo(arguments: list[str]) -> int:
    try:
        module = importlib.import_module("plimsoll.local.demo")
    except ModuleNotFoundError as error:
        if error.name != "plimsoll.local.demo":
            complain(f"plimsoll: the demonstration needs {error.name}: pip install 'plimsoll-operator[demo]'")
        else:
            complain("plimsoll: this installation has no demonstration")
        return FAILED
    return int(module.main(arguments))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main())
