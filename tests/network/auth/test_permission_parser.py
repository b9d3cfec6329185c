"""What may stand behind a client's name, and what may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.permissions import ClientPermissions
from plimsoll.network.auth.permission_parser import parse_permissions


@pytest.mark.parametrize(
    ("text", "grant"),
    [
        ("", ClientPermissions("ann")),
        ("publish,subscribe", ClientPermissions("ann", groups=False, reads=False)),
        ("publish,subscribe,group", ClientPermissions("ann", reads=False)),
        ("publish,subscribe,group,read", ClientPermissions("ann")),
        (
            "read feeds=trades,quotes",
            ClientPermissions("ann", groups=False, publishes=False, subscribes=False, feeds=("quotes", "trades")),
        ),
        ("feeds=-", ClientPermissions("ann", feeds=())),
        ("subscribe,publish", ClientPermissions("ann", groups=False, reads=False)),
        ("publish", ClientPermissions("ann", groups=False, reads=False, subscribes=False)),
        ("subscribe", ClientPermissions("ann", groups=False, reads=False, publishes=False)),
        ("none", ClientPermissions("ann", groups=False, reads=False, publishes=False, subscribes=False)),
        ("publications/s=10", ClientPermissions("ann", publications_per_second=10.0)),
        (
            "publications=10/s bytes=1e+06/s",
            ClientPermissions("ann", publications_per_second=10.0, bytes_per_second=1e6),
        ),
        (
            "publish bytes/s=0.5",
            ClientPermissions("ann", groups=False, reads=False, subscribes=False, bytes_per_second=0.5),
        ),
        ("names=desk-", ClientPermissions("ann", name_prefixes=("desk-",))),
        (
            "subscribe channels=floods,fires",
            ClientPermissions("ann", publishes=False, groups=False, reads=False, channels=("fires", "floods")),
        ),
        ("channels=-", ClientPermissions("ann", channels=())),
        (
            "publish names=b,a,b bytes/s=1",
            ClientPermissions(
                "ann", groups=False, reads=False, subscribes=False, bytes_per_second=1.0, name_prefixes=("a", "b")
            ),
        ),
        (
            "subscribe subscriptions=7",
            ClientPermissions("ann", groups=False, reads=False, publishes=False, max_subscriptions=7),
        ),
    ],
)
def test_a_grant_is_read(text: str, grant: ClientPermissions):
    assert parse_permissions(text.split(), "ann") == grant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("own", "'own': what a client may do is publish, subscribe, group, read or none"),
        ("feeds=a feeds=b", "'feeds=b': write feeds= once"),
        ("feeds=", "'feeds=': name feeds, separated by commas, or write feeds=-"),
        ("publish,", "'publish,': what a client may do"),
        ("publish subscribe", "'subscribe': write roles once, before the quotas, separated by commas"),
        ("bytes/s=1 publish", "'publish': write roles once"),
        ("none,publish", "'none,publish': what a client may do"),
        ("bytes/s=1 bytes=1/s", "'bytes=1/s': quotas are publications/s=N, bytes/s=N, subscriptions=N, durable=N"),
        ("bytes=1", "'bytes=1': quotas are"),
        ("groups=0", "'groups=0': a quota is a whole number above 0"),
        ("names=", "'names=': a prefix of names has 1 to 253 characters"),
        ("names=a,,b", "'names=a,,b': a prefix of names"),
        ("names=a names=b", "'names=b': write names= once"),
        ("channels=a channels=b", "'channels=b': write channels= once"),
        ("channels=a,,b", "'channels=a,,b': name channels, separated by commas, or write channels=-"),
        ("channels=a publish", "'publish': write roles once"),
        ("names=a publish", "'publish': write roles once"),
        ("subscriptions=1/s", "'subscriptions=1/s': a quota is a whole number above 0"),
        ("subscriptions=1.5", "'subscriptions=1.5': a quota is a whole number above 0"),
        ("publications/s=0", "'publications/s=0': a quota is a number above 0"),
        ("publications/s=nan", "'publications/s=nan': a quota is a number above 0"),
        ("publications/s=inf", "'publications/s=inf': a quota is a number above 0"),
        ("publications/s=", "'publications/s=': a quota is a number above 0"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, said: str):
    with pytest.raises(ValueError) as refused:
        parse_permissions(text.split(), "ann")
    assert str(refused.value).startswith(said)


def test_an_identity_is_no_longer_than_a_name_in_a_record():
    assert parse_permissions([], "n" * 253).identity == "n" * 253
    with pytest.raises(ValueError, match=r"^the name 'nnnnnnnnnnnnnnnn'\.\.\. has 254 characters"):
        parse_permissions([], "n" * 254)


@given(st.lists(st.text(alphabet="publishscrb,=/s019.einaf", max_size=20), max_size=4))
def test_any_text_is_read_or_refused_in_words(fields: list[str]):
    try:
        grant = parse_permissions(fields, "ann")
    except ValueError as error:
        assert repr(next(field for field in fields if repr(field) in str(error)))
    else:
        assert grant.identity == "ann"
