"""A head calls the hooks of all its parts."""

from tests.core.fleet import one_cluster

from plimsoll.core.head.part import HeadPart, with_hook


class Ticking(HeadPart):
    def __init__(self) -> None:
        self.ticks = 0

    def tick(self) -> None:
        self.ticks += 1


def test_every_part_that_a_head_has_is_called_once():
    head = one_cluster().head()
    built = [each for each in vars(head).values() if isinstance(each, HeadPart)]
    assert len(built) == len(head.parts)
    assert {*map(id, built)} == {*map(id, head.parts)}


def test_what_waits_in_a_round_goes_on_in_this_order():
    """Reports first, then covers, then what has come in; answers to publishers leave behind all that."""
    head = one_cluster().head()
    assert with_hook(head.parts, "tick") == (
        head.startup, head.covers, head.record_input, head.durable_places, head.coordinator,
        head.places_elsewhere, head.confirmations, head.publish_requests, head.publisher_moves, head.publisher_audit,
        head.claim_exchange,
        head.groups, head.group_declarations, head.durable_groups, head.slice_commands,
    )  # fmt: skip


def test_a_part_without_a_hook_does_nothing_at_it():
    plain, ticking = HeadPart(), Ticking()
    assert with_hook([plain, ticking], "tick") == (ticking,)
    plain.tick()
    assert (plain.report(), plain.status(), plain.wake_at()) == ({}, {}, float("inf"))
