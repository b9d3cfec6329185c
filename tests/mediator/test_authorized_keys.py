"""The authorized-keys file: which key may use which role and name, and what clients may do."""

from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.types.fleet import ClientSpec
from plimsoll.mediator.authorized_keys import (
    KeyHolder,
    authorized_keys_of,
    authorized_keys_text,
    feed_readers_text,
    may_read,
)
from plimsoll.network.auth.permission_parser import parse_permissions


def test_a_name_may_have_two_keys_while_they_change():
    assert authorized_keys_text([KeyHolder("e-0", "edge", ("new", "old")), KeyHolder("c-head", "head", ("h",))]) == (
        "new edge e-0\nold edge e-0\nh head c-head\n"
    )


def test_order_is_no_change():
    holders = [KeyHolder("b", "edge", ("2",)), KeyHolder("a", "edge", ("1",)), KeyHolder("a-head", "head", ("3",))]
    assert authorized_keys_text(holders) == authorized_keys_text(reversed(holders))


def test_what_a_client_may_do_stands_behind_its_name():
    everything = ClientSpec(name="app")
    assert authorized_keys_text([KeyHolder("app", "client", ("k",), everything)]) == "k client app\n"
    reads = ClientSpec(name="app", roles=("Subscribe",), max_subscriptions=10)
    assert (
        authorized_keys_text([KeyHolder("app", "client", ("k",), reads)]) == "k client app subscribe subscriptions=10\n"
    )
    makes = ClientSpec(name="app", max_consumer_groups=100)
    written = authorized_keys_text([KeyHolder("app", "client", ("k",), makes)])
    assert written == "k client app group,publish,subscribe groups=100\n"
    assert parse_permissions(written.split()[3:], "app").max_consumer_groups == 100
    held = ClientSpec(name="app", publications_per_second=Quantity.parse("2k"), bytes_per_second=Quantity.parse("1M"))
    line = "k client app group,publish,subscribe publications/s=2000 bytes/s=1000000\n"
    assert authorized_keys_text([KeyHolder("app", "client", ("k",), held)]) == line
    nothing = ClientSpec(name="app", roles=())
    assert authorized_keys_text([KeyHolder("app", "client", ("k",), nothing)]) == "k client app none\n"


def test_prefixes_of_names_are_written_behind_the_quotas():
    named = ClientSpec(name="app", name_prefixes=("feed-", "desk-", "feed-"))
    line = "k client app group,publish,subscribe names=desk-,feed-\n"
    assert authorized_keys_text([KeyHolder("app", "client", ("k",), named)]) == line
    assert parse_permissions(line.split()[3:], "app") == ClientPermissions(
        "app", name_prefixes=("desk-", "feed-"), reads=False
    )


def test_channels_are_written_and_none_of_them_is_said():
    for channels, text in ((("floods", "fires"), "fires,floods"), ((), "-"), (("none",), "none")):
        line = authorized_keys_text([KeyHolder("app", "client", ("k",), ClientSpec(name="app", channels=channels))])
        assert line == f"k client app group,publish,subscribe channels={text}\n"
        assert parse_permissions(line.split()[3:], "app").channels == tuple(sorted(channels))


def test_recorders_are_told_who_may_read_and_brokers_are_not():
    specs = [
        ClientSpec(name="a"), ClientSpec(name="b", roles=("Read",), feeds=("trades", "quotes")),
        ClientSpec(name="c", roles=("Publish",), feeds=("trades",)), ClientSpec(name="d", channels=("fires",)),
        ClientSpec(name="e", feeds=()),
    ]  # fmt: skip
    holders = [KeyHolder(each.name, "client", (f"k{each.name}",), each) for each in specs]
    text = feed_readers_text([*holders, KeyHolder("h", "head", ("kh",))])
    assert text.splitlines() == [
        "ka client a read", "kb client b read feeds=quotes,trades", "kc client c none",
        "kd client d read channels=fires", "ke client e read feeds=-",
    ]  # fmt: skip
    for line, spec in zip(text.splitlines(), specs, strict=True):
        grant = parse_permissions(line.split()[3:], spec.name)
        for feed in ("trades", "quotes", "fires"):
            assert may_read(spec, feed) == (not grant.read_refusal(feed)), (spec, feed)
    assert not any(word in authorized_keys_text(holders) for word in ("read", "feeds"))


def test_the_file_is_read_back_by_role_and_name():
    holders = [KeyHolder("e", "edge", ("k1", "k2")), KeyHolder("e", "client", ("k3",), ClientSpec(name="e"))]
    found = authorized_keys_of(authorized_keys_text(holders) + "\nodd\n")
    assert found == {("edge", "e"): ("k1", "k2"), ("client", "e"): ("k3",)}
