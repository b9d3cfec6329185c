"""Two consumers that share 60 to 40, one that burns its processor, and consumers that come and go at half load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from plimsoll.core.session import Session
from plimsoll.experiments.dpslb.group_world import GroupWorld
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.pages.charts import Chart, ChartLine

NAME: Final = "dpslb-balance"
FAST, SLOW, LATE = "fast", "slow", "late"
FAST_SECONDS, SLOW_SECONDS, BURNING_SECONDS = 0.002, 0.003, 0.012
"""For an item; then `slow` burns its processor for something else, and takes four times as long."""
SLICES, RATE = 10, 20.0
SHARE_TOLERANCE: Final = 0.01
INTERVAL_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 1.0
PREDICTED_WITHIN: Final = 0.05


@dataclass(frozen=True)
class BalancePlan:
    """Seconds of each part: until loads are even, in which shares are counted, after the burn, after each change."""

    even: float = 60.0
    counted: float = 500.0
    burn: float = 120.0
    change: float = 60.0


PLAN: Final = BalancePlan()


def small(plan: BalancePlan = PLAN) -> BalancePlan:
    """To see it work: fewer items are counted."""
    return replace(plan, counted=60.0, burn=90.0, change=40.0)


@dataclass
class Looks:
    """The slices and the work of each consumer, second by second."""

    world: GroupWorld
    slices: list[tuple[float, dict[str, int]]]
    costs: list[tuple[float, dict[str, float]]]

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / LOOK_SECONDS)):
            self.world.run(LOOK_SECONDS)
            self.slices.append((self.world.now, self.world.held()))
            self.costs.append((self.world.now, self.world.costs()))

    def first(self, since: float, name: str, wanted: int) -> float | None:
        """How long after `since` this consumer had as many slices; None if that was not seen."""
        return next((at - since for at, held in self.slices if at > since and held.get(name, 0) >= wanted), None)

    def gone(self, since: float, name: str) -> float | None:
        """How long after `since` a consumer had ended."""
        return next((at - since for at, held in self.slices if at > since and name not in held), None)


def run(seed: int, *, plan: BalancePlan = PLAN) -> ExperimentResult:
    """The parts under the policy of ours, and the burn under that of the text beside it."""
    two, shares = _shared("Rates", seed, plan)
    burn = _burnt(two, plan)
    text, _ = _shared("Pairing", seed, plan)
    text_burn = _burnt(text, plan)
    change = _changed(seed, plan)
    errors = _errors(two.world.sessions())
    rows = [_row("Rates", two, burn), _row("Pairing", text, text_burn)]
    return ExperimentResult(
        NAME, "DPSLB 2014: shares, a burning consumer, joins and leaves", "Rates", seed,
        [*_share_claims(shares), *_burn_claims(burn, text_burn), _prediction_claim(errors), *_change_claims(change)],
        [_figure("burn", "Slices while one of two consumers burns its processor", two),
         _figure("changes", "Slices while consumers come and go at half load", change["looks"])],
        {"shares": shares, "burn": burn, "burn_pairing": text_burn, "errors": errors,
         "change": {key: value for key, value in change.items() if key != "looks"}},
        NOTES, runs=rows,
    )  # fmt: skip


NOTES: Final = (
    "Consumers are modelled; the group at its head, the sessions of the mediator and the policies are the product's, "
    "and hear and say the same records. Items are counted by slices, range by range.",
    "The policy takes a slice to cost at its taker what it costs at its giver. That is right for slices, and wrong for "
    "consumers of unequal speed: it stops a slice early when the giver is slower, and predicts the taker too high.",
)


def _shared(balancing: str, seed: int, plan: BalancePlan) -> tuple[Looks, dict[str, float]]:
    world = GroupWorld([RATE] * SLICES, balancing, seed)
    looks = Looks(world, [], [])
    world.join(FAST, FAST_SECONDS)
    world.join(SLOW, SLOW_SECONDS)
    looks.run(plan.even)
    before = {name: each.items for name, each in world.consumers.items()}
    looks.run(plan.counted)
    found = {name: each.items - before[name] for name, each in world.consumers.items()}
    return looks, {name: many / sum(found.values()) for name, many in found.items()} | {
        "items": float(sum(found.values()))
    }


def _burnt(looks: Looks, plan: BalancePlan) -> dict[str, Any]:
    world = looks.world
    before, sessions, began = world.held(), len(world.sessions()), world.now
    world.consumers[SLOW].seconds_per_item = BURNING_SECONDS
    overloaded = world.costs()
    looks.run(plan.burn)
    costs = world.costs()
    moved = [at for (at, held), (_, last) in zip(looks.slices[1:], looks.slices, strict=False) if held != last]
    return {
        "slices_before": before[SLOW], "slices_after": world.held()[SLOW], "highest_before": max(overloaded.values()),
        "highest_after": max(costs.values()), "lowest_after": min(costs.values()),
        "slice_of_slow": RATE * BURNING_SECONDS, "sessions": len(world.sessions()) - sessions,
        "seconds": max([at - began for at in moved if at > began], default=0.0), **world.items(),
    }  # fmt: skip


def _changed(seed: int, plan: BalancePlan) -> dict[str, Any]:
    """Four consumers of 40 slices at half load; one joins, then one leaves."""
    world = GroupWorld([RATE] * 40, "Rates", seed)
    looks = Looks(world, [], [])
    for number in range(4):
        world.join(f"worker-{number}", 0.0025)
    looks.run(plan.even)
    load = max(world.costs().values())
    joined_at = world.now
    world.join(LATE, 0.0025)
    looks.run(plan.change)
    left_at = world.now
    world.leave("worker-0")
    looks.run(plan.change)
    return {
        "looks": looks, "load": load, "joined": looks.first(joined_at, LATE, 8),
        "left": looks.gone(left_at, "worker-0"),
        "highest": max(world.costs().values()), "mean": sum(world.costs().values()) / 4, **world.items(),
    }  # fmt: skip


def _share_claims(shares: Mapping[str, float]) -> list[Claim]:
    share = shares[FAST]
    return [
        Claim("Slices 0 to 5 and 6 to 9 are 60 and 40 % of the items (figure 11)", "60 / 40",
              f"{share:.1%} and {shares[SLOW]:.1%} of {shares['items']:,.0f}", abs(share - 0.6) <= SHARE_TOLERANCE),
    ]  # fmt: skip


def _burn_claims(burn: Mapping[str, Any], text: Mapping[str, Any]) -> list[Claim]:
    difference = burn["highest_after"] - burn["lowest_after"]
    return [
        Claim("A consumer that burns its processor loses slices (3.3)", "yes",
              f"{burn['slices_before']} to {burn['slices_after']}, in {burn['seconds']:.0f} s",
              burn["slices_after"] < burn["slices_before"]),
        Claim("until loads differ by less than one of its slices", "even",
              f"{burn['lowest_after']:.2f} and {burn['highest_after']:.2f} s a second, a slice is"
              f" {burn['slice_of_slow']:.2f}", difference <= burn["slice_of_slow"]),
        Claim("The algorithm of the text relieves it, too", "yes",
              f"highest {text['highest_before']:.2f} to {text['highest_after']:.2f}",
              text["highest_after"] < text["highest_before"]),
        Claim("No item is lost or worked on twice by that", "0",
              f"{burn['lost'] + text['lost']} and {burn['repeated'] + text['repeated']} of"
              f" {burn['worked_on'] + text['worked_on']:,}",
              not (burn["lost"] + text["lost"] + burn["repeated"] + text["repeated"])),
    ]  # fmt: skip


def _prediction_claim(errors: list[dict[str, Any]]) -> Claim:
    largest = max(
        (abs(each["measured"] - each["predicted"]) for each in errors if each["measured"] is not None), default=1.0
    )
    return Claim(
        "Each session predicts the loads of its consumers, of unequal speed", "within 5 points (ours)",
        f"largest error {100 * largest:.1f} points", largest <= PREDICTED_WITHIN,
    )  # fmt: skip


def _change_claims(change: Mapping[str, Any]) -> list[Claim]:
    joined, left = change["joined"], change["left"]
    even = change["highest"] / change["mean"]
    return [
        Claim("At half load a newcomer has its even share within two intervals (3.4)", f"{2 * INTERVAL_SECONDS:.0f} s",
              "not seen" if joined is None else f"{joined:.0f} s", joined is not None and joined <= 20.0),
        Claim("One that leaves gives all, then ends (3.4)", "yes",
              "not seen" if left is None else f"after {left:.0f} s", left is not None),
        Claim("The others are even then", "within 12 %", f"highest {even:.2f} of the average", even <= 1.12),
        Claim("No item is lost or worked on twice by joins and leaves", "0",
              f"{change['lost']} and {change['repeated']} of {change['worked_on']:,}",
              not (change["lost"] or change["repeated"])),
    ]  # fmt: skip


def _errors(sessions: list[Session]) -> list[dict[str, Any]]:
    """Of each session: the load that was predicted of each consumer, and what was measured."""
    return [
        {"session": one.name, "consumer": each.edge, "predicted": each.utilization_after,
         "measured": each.utilization_measured}
        for one in sessions if one.plan is not None for each in one.plan.forecasts
    ]  # fmt: skip


def _row(balancing: str, looks: Looks, burn: Mapping[str, Any]) -> dict[str, Any]:
    moved = sum(one.counts()["moved"] for one in looks.world.sessions())
    return {
        "balancing": balancing, "sessions": len(looks.world.sessions()), "slices_moved": moved,
        "slices_of_slow": f"{burn['slices_before']} to {burn['slices_after']}",
        "highest": f"{burn['highest_before']:.2f} to {burn['highest_after']:.2f}",
    }  # fmt: skip


def _figure(name: str, title: str, looks: Looks) -> Figure:
    names = sorted({name for _, held in looks.slices for name in held})
    lines = [
        ChartLine(one, look, [(at, float(held[one])) for at, held in looks.slices if one in held])
        for look, one in enumerate(names)
    ]
    return Figure(name, Chart(title, "slices", lines), "How many slices each consumer has.")
