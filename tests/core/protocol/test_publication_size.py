"""The size of a publication on the links between brokers, and payloads that make it as large as is wanted."""

import pytest

from plimsoll.core.protocol.publication_size import payload_for, publication_bytes

WHO = ("h", "p", {"topic": "t1"})


@pytest.mark.parametrize("size", [200, 256, 300, 400, 1000, 65_535, 65_700, 70_000])
def test_no_payload_is_longer_that_fits(size: int):
    payload = payload_for(*WHO, size)
    assert publication_bytes(*WHO, payload) <= size < publication_bytes(*WHO, payload + 1)


def test_a_publication_that_is_too_large_without_a_payload_gets_none():
    assert payload_for(*WHO, 10) == 0
    assert publication_bytes(*WHO, 0) > 10


def test_all_that_names_it_counts():
    assert publication_bytes("head", "p", WHO[2], 0) == publication_bytes(*WHO, 0) + 3
    assert publication_bytes("h", "p", {"topic": "t12"}, 0) == publication_bytes(*WHO, 0) + 1
