"""Peers learn after how much silence another process may lead, and when none may any more."""

from __future__ import annotations

from tests.core.fleet import one_cluster

from plimsoll.core.head.standby.silence import tell_silence


def test_those_that_are_connected_learn_it_and_those_that_come_later() -> None:
    fleet = one_cluster(1)
    fleet.run(1.0)
    head, edge = fleet.head(), fleet.edge("e1")
    link = next(link for link in edge.dialled.values() if link.name == "h")
    for has_standby, expected in ((True, 3125), (False, 0)):
        tell_silence(head, has_standby=has_standby)
        fleet.run(0.5)
        assert link.remote is not None
        assert link.remote.silence_ms == expected
        assert link.open
        later = fleet.client(f"c{expected}", "h").dialled["h"]
        assert later.remote is not None
        assert later.remote.silence_ms == expected
