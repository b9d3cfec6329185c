"""What a head reports of its groups: counts are of all, names are bounded."""

from __future__ import annotations

from tests.core.group_play import GROUP, GroupPlay

from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.head.groups.report import CONSUMERS_SHOWN, SLICES_SHOWN, group_report
from plimsoll.core.policies.consumer_groups.reported import reported_groups


def test_consumers_slices_and_what_waits() -> None:
    play = GroupPlay()
    play.join("a", work=0.2)
    play.run(1.0)
    for n in range(40):
        play.publish(n)
    play.run(2.5)
    shown = reported_groups(play.fleet.head().reporter.last)[GROUP]
    assert (shown["slices"], shown["members"], shown["without_consumer"]) == (4, 1, 0)
    assert sum(shown["slice_backlogs"].values()) == shown["backlog"] == shown["consumers"]["a"]["backlog"] > 0
    assert shown["consumers"]["a"]["seconds_per_item"] > 0.15
    assert shown["counts"]["joined"] == 1


def test_names_are_bounded_and_counts_are_of_all() -> None:
    play = GroupPlay(count=SLICES_SHOWN + 1)
    play.join("a")
    play.run(1.0)
    group = play.group
    for n in range(CONSUMERS_SHOWN + 10):
        group.members[f"idle-{n}"] = MemberEntry(f"idle-{n}", "key", 1, None, play.fleet.now, 0.0)
    shown = group_report(group, play.fleet.head().groups.stamps, [3] * (SLICES_SHOWN + 1))
    assert shown["members"] == CONSUMERS_SHOWN + 11
    assert len(shown["consumers"]) == CONSUMERS_SHOWN
    assert "a" in shown["consumers"]
    assert (shown["slice_backlogs"], shown["slice_lags"]) == ({}, {})
    assert shown["lag"] == shown["consumers"]["a"]["lag"] == 3 * (SLICES_SHOWN + 1)
