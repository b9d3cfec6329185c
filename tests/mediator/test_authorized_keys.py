"""The authorized-keys file: which key may use which role and name, and what clients may do."""

from plimsoll.broker.auth.permission_parser import parse_permissions
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.types.fleet import ClientSpec
from plimsoll.mediator.authorized_keys import KeyHolder, authorized_keys_of, authorized_keys_text


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
    held = ClientSpec(name="app", publications_per_second=Quantity.parse("2k"), bytes_per_second=Quantity.parse("1M"))
    line = "k client app group,publish,subscribe publications/s=2000 bytes/s=1000000\n"
    assert authorized_keys_text([KeyHolder("app", "client", ("k",), held)]) == line
    nothing = ClientSpec(name="app", roles=())
    assert authorized_keys_text([KeyHolder("app", "client", ("k",), nothing)]) == "k client app none\n"


def test_prefixes_of_names_are_written_behind_the_quotas():
    named = ClientSpec(name="app", name_prefixes=("feed-", "desk-", "feed-"))
    line = "k client app group,publish,subscribe names=desk-,feed-\n"
    assert authorized_keys_text([KeyHolder("app", "client", ("k",), named)]) == line
    assert parse_permissions(line.split()[3:], "app") == ClientPermissions("app", name_prefixes=("desk-", "feed-"))


def test_channels_are_written_and_none_of_them_is_said():
    for channels, text in ((("floods", "fires"), "fires,floods"), ((), "-"), (("none",), "none")):
        line = authorized_keys_text([KeyHolder("app", "client", ("k",), ClientSpec(name="app", channels=channels))])
        assert line == f"k client app group,publish,subscribe channels={text}\n"
        assert parse_permissions(line.split()[3:], "app").channels == tuple(sorted(channels))


def test_the_file_is_read_back_by_role_and_name():
    holders = [KeyHolder("e", "edge", ("k1", "k2")), KeyHolder("e", "client", ("k3",), ClientSpec(name="e"))]
    found = authorized_keys_of(authorized_keys_text(holders) + "\nodd\n")
    assert found == {("edge", "e"): ("k1", "k2"), ("client", "e"): ("k3",)}
