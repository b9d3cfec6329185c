"""The commands of `plimsoll` and their arguments; each command is a function elsewhere, loaded when it is run.

Invalid arguments end with a message that says what is wrong and what was probably meant, never with a traceback.
Everything imported here costs every start of the program time, completions included: no command's module is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plimsoll.cli.argument_parser import GLOBAL_OPTIONS, ArgumentParser, lazy_command
from plimsoll.cli.argument_types import (
    FORMATS,
    parse_address,
    parse_count,
    parse_duration,
    parse_names,
    parse_number,
    parse_numbers,
    parse_seconds,
    parse_share,
    parse_since,
    parse_span,
    parse_speed,
)
from plimsoll.cli.exit_codes import EXIT_CODE_HELP

KIND_HELP = (
    "BrokerFleet (bf), BrokerCluster (bc), EdgeBroker (eb), HardwareProfile (hwp), LoadBalancingSession (lbs),"
    " Feed (fd), Channel (ch)"
)
"""The kinds of `plimsoll.core.spec`; written out because loading those would double the time of a start."""
SHELLS = ("bash", "zsh", "fish")


SIMULATED_POLICIES = ("own", "none", "padres", "random", "least-loaded", "greedy", "bad", "pulsar", "delay-sensitive")
"""Of `plimsoll simulate`: own is the policy of the files, none balances nothing; the others are those of
`plimsoll.core.spec`, written out as the kinds are. Those with topics take attribute and deadlines of the World."""


def parser() -> ArgumentParser:
    """The commands and their arguments."""
    top = ArgumentParser(
        prog="plimsoll",
        description="Run, watch and try a fleet of content-based publish/subscribe brokers, locally or on Kubernetes.",
        epilog=EXIT_CODE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_global_options(top)
    top.add_argument("--version", action=_VersionAction, nargs=0, help="print the version of this program, and end")
    common = ArgumentParser(add_help=False)
    _add_global_options(common)
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, command: str, text: str) -> ArgumentParser:
        made: ArgumentParser = commands.add_parser(name, help=text, description=text, parents=[common])
        module, _, function = command.partition(".")
        made.set_defaults(load=lazy_command(module, function), chosen=made)
        return made

    _add_lifecycle_commands(add)
    _add_inspect_commands(add)
    _add_session_commands(add)
    _add_pubsub_commands(add)
    _add_bench_command(add)
    _add_context_commands(add)
    _add_conformance_command(add)
    _add_simulate_command(add)
    _add_world_command(add)
    made = add("demo", "demo.demo", "Run the demonstration, in a checkout (`demo --help`).")
    made.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="those of the demonstration")
    made = add("experiment", "experiment.experiment", "Run a paper's experiment, in a checkout (`experiment --help`).")
    made.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="those of the experiment")
    made = add("completion", "completion.completion", "Print a script by which a shell completes the commands.")
    made.add_argument("shell", choices=SHELLS, metavar="|".join(SHELLS), help="`plimsoll completion bash`, for example")
    add("version", "version.version", "Print the version of this program and of the resources it supports.")
    return top


def _add_global_options(made: argparse.ArgumentParser) -> None:
    """Options that may stand before the command and behind it; without a default here, neither hides the other."""
    where = made.add_argument_group("fleet", "a fleet on this machine, in a Kubernetes cluster, or at an address")
    for flags, text in GLOBAL_OPTIONS:
        where.add_argument(*flags, default=argparse.SUPPRESS, metavar="NAME", help=text)


class _VersionAction(argparse.Action):
    """Prints the version and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.exit(lazy_command("version", "version")()(argparse.Namespace()))


AddCommand = Callable[[str, str, str], ArgumentParser]


def _add_lifecycle_commands(add: AddCommand) -> None:
    made = add(
        "example",
        "example.example",
        "Print an example: a fleet for `up` or for Kubernetes, or a program.",
    )
    made.add_argument("name", metavar="EXAMPLE", nargs="?", help="default: list the examples")
    made = add("up", "lifecycle.up", "Run a fleet from its resources until Ctrl-C, which shuts it down cleanly.")
    _add_file_options(made)
    made.add_argument("-d", "--detach", action="store_true", help="return when the fleet is ready and leave it running")
    made.add_argument(
        "--metrics",
        type=parse_address,
        metavar="HOST:PORT",
        help="serve metrics of feeds and channels for Prometheus there, as 127.0.0.1:9420",
    )
    made = add("down", "lifecycle.down", "Stop a fleet: edges first, then heads.")
    made.add_argument("fleet_name", metavar="FLEET", nargs="?", help="name of the fleet")
    _add_file_options(
        add("apply", "lifecycle.apply", "Create or change objects of a fleet, all of them or none; brokers follow.")
    )
    made = add("delete", "lifecycle.delete", "Delete an object after its brokers have left.")
    made.add_argument("kind", metavar="KIND", help=KIND_HELP)
    made.add_argument("name", metavar="NAME")
    made = add("validate", "lifecycle.validate", "Check resources without starting anything.")
    _add_file_options(made)
    made.add_argument("--ports", action="store_true", help="also check that the named ports are free on this machine")


def _add_inspect_commands(add: AddCommand) -> None:
    made = add("get", "inspect.get", "Show objects.")
    made.add_argument("kind", metavar="KIND", help=f"all, {KIND_HELP}; or bundles, consumers, subscribers, topics")
    made.add_argument(
        "--away", action="store_true", help="of subscribers: those that are away, and whose place a head keeps"
    )
    made.add_argument("name", metavar="NAME", nargs="?")
    made.add_argument("-o", "--output", choices=FORMATS, default="table", help="default: table")
    made.add_argument("-w", "--watch", action="store_true", help="then print a line for each change")
    made = add("describe", "inspect.describe", "Show everything about one object, events included.")
    made.add_argument("kind", metavar="KIND", help=KIND_HELP)
    made.add_argument("name", metavar="NAME")
    made = add("watch", "inspect.watch", "Show the fleet as it changes; without a terminal, a line for each change.")
    made.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between redraws; default: 1")
    made = add("explain", "inspect.explain", "Show the fields of a kind, or each move of a session and its reason.")
    made.add_argument("path", metavar="KIND[.FIELD...]|lbs/NAME", help="as in bc, bc.edges or lbs/one")
    made = add("logs", "logs.logs", "Show the log of a broker, or of the fleet's mediator.")
    made.add_argument("broker", metavar="BROKER", help="head or edge; on one machine local.mediator, too")
    made.add_argument("-f", "--follow", action="store_true", help="then print new lines as they are written")
    made.add_argument("--tail", type=parse_number, metavar="N", help="only the last N lines")
    made.add_argument("--since", type=parse_duration, metavar="TIME", help="only lines of the last TIME, such as 10m")
    made = add("events", "inspect.events", "Show the events of the fleet's objects.")
    made.add_argument("-w", "--watch", action="store_true", help="then print new events as they happen")


def _add_session_commands(add: AddCommand) -> None:
    _add_rebalance_command(add)
    text = "Cordon an edge and move its subscribers away; or a head, and its publishers; or a consumer, and its slices."
    made = add("drain", "sessions.drain", text)
    made.add_argument("edge", metavar="EDGE|HEAD|CONSUMER")
    made.add_argument("--group", metavar="GROUP", help="drain a consumer of this group")
    _add_session_options(made)
    made = add("shuffle", "sessions.shuffle", "Plan for all edges of a cluster at once, and move live subscribers.")
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
    _add_bundle_commands(add)
    for name, command, text in (
        ("cordon", "sessions.cordon", "Place newcomers on other edges, or new publishers at other heads."),
        ("uncordon", "sessions.uncordon", "Let an edge or a head take newcomers again."),
    ):
        add(name, command, text).add_argument("edge", metavar="EDGE|HEAD")
    made = add("approve", "sessions.approve", "Approve the plan of a session or a dry run, so that it is carried out.")
    made.add_argument("session", metavar="SESSION")
    made.add_argument("--hash", metavar="HASH", help="approve only the plan with this hash (or prefix of it)")
    _add_wait_options(made)
    made = add("stop", "sessions.stop", "Stop a session after its current batch.")
    made.add_argument("session", metavar="SESSION")


def _add_rebalance_command(add: AddCommand) -> None:
    made = add(
        "rebalance", "sessions.rebalance",
        "Move live subscribers between edges, publishers between heads, or slices between consumers.",
    )  # fmt: skip
    made.add_argument(
        "--from",
        dest="source",
        metavar="EDGE",
        help="source edge; or a cluster, if its policy plans for all of its edges at once, or with --publishers;"
        " with --group a consumer",
    )
    made.add_argument(
        "--to",
        dest="target",
        metavar="EDGE",
        help="target edge, with --group a consumer; default: the one with the least load",
    )
    _add_slice_options(made)
    made.add_argument(
        "--publishers",
        action="store_true",
        help="move publishers from the head of the cluster --from to those of others; default: as few as even them out",
    )
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
        help="share of those at the source to move, such as 30%%",
    )
    _add_session_options(made)


def _add_bundle_commands(add: AddCommand) -> None:
    for name, text in (
        ("split", "Split bundles of topics in two."),
        ("unload", "Move bundles of topics from their edges, with their live subscribers."),
    ):
        made = add(name, f"bundles.{name}", text)
        made.add_argument("cluster", metavar="CLUSTER")
        made.add_argument("bundles", metavar="BUNDLE", nargs="+", help="as `plimsoll get bundles` shows them")
        if name == "unload":
            made.add_argument("--to", dest="target", metavar="EDGE", help="target; default: the policy chooses")
        made.add_argument("--dry-run", action="store_true", help="only plan")
        made.add_argument("--name", metavar="NAME", help="name of the session; default: generated")
        _add_wait_options(made)


def _add_slice_options(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--group", metavar="GROUP", help="move slices of this consumer group; default: as its policy plans"
    )
    made.add_argument(
        "--slices", type=parse_numbers, default=[], metavar="N,M", help="with --group: these slices; default: all"
    )


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
        "pubsub.pub",
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
    _add_feed_commands(add)
    made = add("sub", "pubsub.sub", "Subscribe and print a line of JSON for each delivery.")
    made.add_argument(
        "subscriptions", metavar="SUBSCRIPTION", nargs="+", help="as in \"[class,=,'STOCK'],[price,>,25.0]\""
    )
    made.add_argument("--count", type=int, metavar="N", help="stop after N deliveries")
    made.add_argument("--seconds", type=float, metavar="S", help="stop after S seconds")
    made.add_argument(
        "--latency", type=parse_seconds, metavar="S", help="within which a delivery is wanted; late ones are counted"
    )
    made.add_argument("--full", action="store_true", help="also print publisher, origin, position and payload")
    made.add_argument(
        "--since", type=parse_span, metavar="TIME", help="begin with what came in the last TIME, as in 10m or 2h"
    )
    _add_connection_options(made)


def _add_feed_commands(add: AddCommand) -> None:
    made = add("record", "record.record", "Record what a subscription delivers, as a dataset of Parquet files.")
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("-f", "--file", type=Path, metavar="FILE", help="with the Feed to record")
    what.add_argument("--subscription", metavar="SUBSCRIPTION", help="as in \"[class,=,'STOCK'],[price,>,25.0]\"")
    made.add_argument("--feed", metavar="FEED", help="which Feed of the file; default: the only one")
    made.add_argument(
        "--path", metavar="DIR", help="folder of the dataset, or s3a://BUCKET/PREFIX; default: that of the Feed"
    )
    made.add_argument("--commit", type=parse_seconds, metavar="S", help="commit every S seconds; default: 10")
    made.add_argument("--seconds", type=parse_seconds, metavar="S", help="stop after S seconds")
    made.add_argument("--count", type=parse_number, metavar="N", help="stop when the dataset has N publications")
    _add_connection_options(made)
    made = add("fetch", "fetch.fetch", "Copy the dataset of a feed from its recorder. Run it again to add what is new.")
    made.add_argument("feed", metavar="FEED", help="the feed")
    made.add_argument("--to", metavar="DIR", help="folder of the copy; default: the name of the feed")
    _add_since_option(made)
    made.add_argument("--follow", action="store_true", help="keep adding new commits until Ctrl-C")
    made.add_argument("--cluster", help=argparse.SUPPRESS)  # it is refused, with what to do instead
    _add_client_option(made)
    made = add("replay", "replay.replay", "Publish a recorded dataset again, in its order and at its rates.")
    made.add_argument(
        "dataset", metavar="DIR|feed/FEED",
        help="folder of the dataset, or s3a://BUCKET/PREFIX; or a feed, which its recorder then serves",
    )  # fmt: skip
    _add_since_option(made)
    made.add_argument(
        "--speed",
        type=parse_speed,
        default=1.0,
        metavar="N",
        help="2x: twice as fast; max: without waiting; default: 1x",
    )
    _add_connection_options(made)


def _add_connection_options(made: argparse.ArgumentParser) -> None:
    _add_head_options(made)
    made.add_argument("--name", default="", help="name of the publisher or subscriber; default: generated")


def _add_since_option(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--since", type=parse_since, metavar="ROW|TIME",
        help="first row, or time since which rows were recorded, as 2h or 2026-11-25T16:00:00Z; default: all rows",
    )  # fmt: skip


def _add_head_options(made: argparse.ArgumentParser) -> None:
    made.add_argument("--cluster", metavar="NAME", help="whose head to connect to; default: the first one running")
    _add_client_option(made)


def _add_client_option(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--client",
        metavar="NAME",
        help="whose keys to use, of `security.clients`; default: on one machine your own, on Kubernetes the only one",
    )


def _add_bench_command(add: AddCommand) -> None:
    made = add(
        "bench", "bench.bench", "Publish at a fixed rate, receive it again, and measure delivery delays and losses."
    )
    made.add_argument("--publishers", type=parse_number, default=1, metavar="N", help="default: 1")
    made.add_argument("--subscribers", type=parse_number, default=1, metavar="N", help="default: 1; each receives all")
    made.add_argument(
        "--rate",
        type=parse_number,
        default=100,
        metavar="N",
        help="publications per second of all together; default: 100",
    )
    made.add_argument("--size", type=parse_number, default=100, metavar="BYTES", help="payload of each; default: 100")
    made.add_argument("--seconds", type=parse_seconds, default=10.0, metavar="S", help="of publishing; default: 10")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    _add_head_options(made)


def _add_simulate_command(add: AddCommand) -> None:
    made = add("simulate", "simulate.simulate", "Run a fleet and its traffic in virtual time, under several policies.")
    made.add_argument(
        "-f", "--file", action="append", required=True, metavar="FILE", help="a World and its fleet; files or folders"
    )
    made.add_argument(
        "--policy", action="append", choices=SIMULATED_POLICIES, metavar="NAME",
        help=f"one of {', '.join(SIMULATED_POLICIES)}; give it several times to compare (default: own, the files')",
    )  # fmt: skip
    made.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")
    made.add_argument("--page", type=Path, metavar="FILE", help="write the comparison as an HTML page")
    made.add_argument(
        "--json", type=Path, metavar="FILE", help="write all numbers as JSON; `-` prints them instead of the table"
    )


def _add_world_command(add: AddCommand) -> None:
    made = add("world", "world.world", "Make a World of the running fleet and its load, for `simulate`.")
    made.add_argument("--cluster", metavar="NAME", help="only this cluster; default: the whole fleet")
    made.add_argument(
        "--over", type=parse_seconds, default=30.0, metavar="S", help="seconds to measure rates over; default: 30"
    )
    made.add_argument(
        "--duration", type=parse_duration, default="10m", metavar="TIME", help="of the simulation; default: 10m"
    )
    made.add_argument(
        "--from-status",
        action="store_true",
        help="ask no broker: make publications and subscriptions up from the loads in the statuses",
    )
    made.add_argument("--write", type=Path, metavar="FILE", help="write it to a file; default: standard output")


def _add_context_commands(add: AddCommand) -> None:
    made = add("context", "context.list_contexts", "Name fleets, and choose the one that commands go to.")
    actions = made.add_subparsers(metavar="ACTION", required=True)

    def add_action(name: str, function: str, text: str) -> ArgumentParser:
        action: ArgumentParser = actions.add_parser(name, help=text, description=text)
        action.set_defaults(load=lazy_command("context", function), chosen=action)
        return action

    _add_context_fields(add_action("add", "add", "Store a context: an address, a local fleet, or a Kubernetes one."))
    action = add_action("list", "list_contexts", "List contexts, local fleets, and contexts of the kubeconfig.")
    action.add_argument("-o", "--output", choices=("table", "name", "json"), default="table", help="default: table")
    action = add_action("use", "use", "Let commands go to a context unless they name another.")
    action.add_argument("name", metavar="NAME", nargs="?")
    action.add_argument("--none", action="store_true", help="use no context: the only local fleet, as at first")
    for name, function, text in (
        ("show", "show", "Show a context, or the one in use."),
        ("delete", "delete", "Forget a context; its fleet stays as it is."),
    ):
        add_action(name, function, text).add_argument("name", metavar="NAME", nargs="?" if name == "show" else None)
    made = add(
        "client-config", "client_config.client_config", "Print a connection file: what an application connects with."
    )
    made.add_argument("name", metavar="NAME", help="name of the client, one of `security.clients` if the fleet has any")
    made.add_argument("--cluster", metavar="NAME", help="with the head of this cluster alone; default: all heads")
    made.add_argument(
        "--write", type=Path, metavar="FILE", help="write it to this file, which you alone may read, instead"
    )


def _add_context_fields(made: argparse.ArgumentParser) -> None:
    made.add_argument("name", metavar="NAME")
    made.add_argument(
        "--address", action="append", default=[], metavar="TCP://HOST:PORT", help="of a head; several may be given"
    )
    made.add_argument(
        "--key-file", metavar="FILE",
        help="the secret key of this client, or a connection file as `plimsoll client-config` prints it",
    )  # fmt: skip
    made.add_argument(
        "--server-key", metavar="KEY|FILE", help="the head's public key; a connection file has it already"
    )
    made.add_argument("--plain", action="store_true", help="the fleet at the address has no keys: nothing is encrypted")
    made.add_argument("--fleet", default=argparse.SUPPRESS, metavar="NAME", help="a fleet of this machine")
    made.add_argument("--kubernetes", metavar="CONTEXT", help="a context of the kubeconfig")
    made.add_argument(
        "-n",
        "--namespace",
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="with --kubernetes; default: its own",
    )


def _add_conformance_command(add: AddCommand) -> None:
    text = "Try a client program against the protocol: which of its rules does it keep?"
    made = add("conformance", "conformance.conformance", text)
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


def _add_file_options(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "-f", "--file", dest="files", metavar="FILE", nargs="+", required=True, action="extend",
        help="YAML or JSON: files, folders, or - for standard input",
    )  # fmt: skip
