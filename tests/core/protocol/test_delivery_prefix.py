"""A prefix and the encoded item behind it are what the encoder makes of the whole message."""

from __future__ import annotations

import pytest

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES, deliver_prefix, epoch_prefix, is_epoch

GAP = msg.Gap("h", 1, 2, 1, 9, [("h", 1, 8)], "queue")
PUBLICATION = msg.PubOpen(7, "h", 1, 7, "p", 1, 3, 0, 5, msg.Body({"n": 4}, b"x"))


@pytest.mark.parametrize("number", [2**16, 2**24 + 3, 2**32 - 1])
@pytest.mark.parametrize("item", [GAP, PUBLICATION])
def test_a_delivery_has_the_bytes_of_its_encoding(number: int, item: msg.Gap | msg.PubOpen):
    assert deliver_prefix(number) + wire.encode(item) == wire.encode(msg.Deliver(number, item))


@pytest.mark.parametrize("number", [2**16, 2**24 + 3, 2**32 - 1])
def test_an_epoch_has_the_bytes_of_its_encoding(number: int):
    assert epoch_prefix(number) + wire.encode(GAP) == wire.encode(msg.Epoch(number, GAP))


@pytest.mark.parametrize("number", [0, 1, 127, 128, 255, 256, 2**16 - 1])
def test_a_small_number_has_four_bytes_all_the_same(number: int):
    """The encoder would write fewer; every decoder reads both, and one length makes prefixes easy to cut off."""
    assert msg.decode(msg.to_client, deliver_prefix(number) + wire.encode(PUBLICATION)) == msg.Deliver(
        number, PUBLICATION
    )
    assert msg.decode(msg.to_client, epoch_prefix(number) + wire.encode(GAP)) == msg.Epoch(number, GAP)
    assert len(deliver_prefix(number)) == len(epoch_prefix(number)) == PREFIX_BYTES


def test_the_two_are_told_apart():
    assert is_epoch(epoch_prefix(3) + wire.encode(GAP))
    assert not is_epoch(deliver_prefix(3) + wire.encode(GAP))
