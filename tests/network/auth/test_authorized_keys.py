"""Keys, ZAP answers, and the table of what libzmq does with them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85 as reference

from plimsoll.core.permissions import ClientPermissions, NameGrants
from plimsoll.network.auth import authorized_keys
from plimsoll.network.auth.authorized_keys import (
    CONTROL_DOMAIN,
    DATA_DOMAIN,
    FEED_DOMAIN,
    AuthorizedKeys,
    KeyFileError,
    KeyIdentity,
    parse_authorized_keys,
    read_secret_key,
    z85,
)

KEY, OTHER = (zmq.curve_keypair()[0].decode() for _ in range(2))
PATIENCE_MS = 5_000


# -- keys --------------------------------------------------------------------------------------------------------------


@given(st.binary(min_size=32, max_size=32))
def test_z85_is_that_of_zeromq(raw: bytes):
    assert z85(raw) == reference.encode(raw).decode()


def test_lines_become_identities():
    text = f"# who may come\n\n{KEY} client ann  # until spring\n{OTHER}\tmediator\tm\n"
    ann = KeyIdentity("client", "ann", ClientPermissions("ann"))
    assert parse_authorized_keys(text, "keys") == {KEY: ann, OTHER: KeyIdentity("mediator", "m")}


def test_behind_a_clients_name_stands_what_it_may_do():
    text = f"{KEY} client ann publish publications/s=10 # as agreed\n{OTHER} client bob subscriptions=3"
    assert parse_authorized_keys(text, "keys") == {
        KEY: KeyIdentity(
            "client",
            "ann",
            ClientPermissions("ann", groups=False, reads=False, subscribes=False, publications_per_second=10.0),
        ),
        OTHER: KeyIdentity("client", "bob", ClientPermissions("bob", max_subscriptions=3)),
    }


def test_a_key_may_begin_like_a_comment():
    key = "#" + KEY[1:]
    assert parse_authorized_keys(f"{key} client ann\n#{key} client bob", "keys") == {
        key: KeyIdentity("client", "ann", ClientPermissions("ann"))
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{KEY} client", "keys:1: expected `public-key role name`, found 2 fields"),
        (f"\n{KEY} client ann bob", "keys:2: 'bob': what a client may do is publish, subscribe, group, read or none"),
        (f"{KEY} edge e publish", "keys:1: found 'publish' after the name; only clients have permissions"),
        (f"{KEY} client ann publish\n{OTHER} client ann", "keys:2: ann may do something else above"),
        (f"{KEY[:-1]} client ann", "keys:1: a public key is 40 characters of Z85, found 39"),
        (f"{KEY} admin ann", "keys:1: unknown role 'admin'; roles are client, collector, edge, head, mediator"),
        (f"{KEY} head *", "keys:1: only a client may have the name '*'"),
        (f"{KEY} client ann\n{KEY} client bob", "keys:2: this key is already listed for ann"),
        (f"{KEY} client ann\n{OTHER} edge ann", "keys:2: ann is a client above and a edge here; a name has one role"),
        (f"\n{KEY} client {'n' * 254}", "keys:2: the name 'nnnnnnnnnnnnnnnn'... has 254 characters"),
    ],
    ids=[
        "two-fields",
        "unknown-grant",
        "granted-edge",
        "two-grants",
        "short-key",
        "unknown-role",
        "any-head",
        "key-twice",
        "name-twice",
        "long-name",
    ],
)
def test_a_bad_line_is_named(text: str, said: str):
    with pytest.raises(KeyFileError) as refused:
        parse_authorized_keys(text, "keys")
    assert str(refused.value).startswith(said)


def test_a_secret_key_file_holds_a_key(tmp_path: Path):
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    assert read_secret_key(str(path)) == KEY
    path.write_text("open sesame")
    with pytest.raises(KeyFileError, match="does not hold a Z85 secret key"):
        read_secret_key(str(path))
    with pytest.raises(KeyFileError, match="cannot read"):
        read_secret_key(str(tmp_path / "none"))


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> AuthorizedKeys:
    path = tmp_path / "authorized-keys"
    path.write_text(f"{KEY} client ann\n{OTHER} mediator m\n")
    return AuthorizedKeys.read(str(path))


def request(key: str, domain: str = DATA_DOMAIN, mechanism: bytes = b"CURVE") -> list[bytes]:
    return [b"1.0", b"7", domain.encode(), b"127.0.0.1", b"", mechanism, reference.decode(key)]


def test_a_known_key_is_admitted_under_its_name(authority: AuthorizedKeys):
    assert authority.answer_zap(request(KEY)) == [b"1.0", b"7", b"200", b"OK", KEY.encode(), b""]
    assert (authority.admitted, authority.refused) == (1, 0)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (request(zmq.curve_keypair()[0].decode()), b"400"),
        (request(KEY, CONTROL_DOMAIN), b"400"),
        (request(OTHER, DATA_DOMAIN), b"400"),
        (request(KEY, "elsewhere"), b"400"),
        (request(KEY, ""), b"400"),
        (request(KEY, mechanism=b"NULL"), b"400"),
        ([*request(KEY)[:6], b"short"], b"400"),
        (request(KEY)[:6], b"400"),
        (request(KEY)[:4], b"500"),
        ([b"2.0", *request(KEY)[1:]], b"500"),
        ([], b"500"),
    ],
)
def test_everything_else_is_refused(authority: AuthorizedKeys, asked: list[bytes], code: bytes):
    answer = authority.answer_zap(asked)
    assert (len(answer), answer[0], answer[2], answer[4]) == (6, b"1.0", code, b"")
    assert (authority.admitted, authority.refused) == (0, 1)


@given(st.lists(st.binary(max_size=40), max_size=9))
def test_no_request_is_admitted_by_accident(parts: list[bytes]):
    authority = AuthorizedKeys(Path("none"), {KEY: KeyIdentity("client", "ann")})
    assert authority.answer_zap(parts)[2] in (b"400", b"500")


def test_a_changed_file_is_read_again_and_a_broken_one_is_not_taken(authority: AuthorizedKeys):
    assert not authority.refresh()
    authority.path.write_text(f"{KEY} client ann\n{OTHER} client ann\n")
    assert authority.refresh()
    assert authority.keys == {
        KEY: KeyIdentity("client", "ann", ClientPermissions("ann")),
        OTHER: KeyIdentity("client", "ann", ClientPermissions("ann")),
    }
    authority.path.write_text("nonsense")
    assert not authority.refresh()
    assert "authorized-keys:1" in authority.fault
    assert authority.answer_zap(request(OTHER))[2] == b"200"
    authority.path.unlink()
    assert not authority.refresh()
    assert "cannot read" in authority.fault
    authority.path.write_text(f"{KEY} client ann\n")
    assert authority.refresh()
    assert authority.fault == ""
    assert authority.answer_zap(request(OTHER))[2] == b"400"


def test_a_file_that_was_replaced_is_seen_even_with_the_same_time_and_size(authority: AuthorizedKeys):
    stat = authority.path.stat()
    other = authority.path.with_name("other")
    other.write_text(authority.path.read_text().replace("ann", "eve"))
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(authority.path)
    assert authority.refresh()
    assert {identity.name for identity in authority.keys.values()} == {"eve", "m"}


def test_a_file_that_cannot_be_used_at_the_start_is_an_error(tmp_path: Path):
    with pytest.raises(KeyFileError, match=r"security.authorized_keys_file: cannot read"):
        AuthorizedKeys.read(str(tmp_path / "none"))


def test_names_are_bound_to_keys():
    known = {"1": ("client", "ann"), "2": ("client", "*"), "3": ("edge", "e")}
    authority = AuthorizedKeys(Path("none"), {key: KeyIdentity(*each) for key, each in known.items()})
    assert authority.refusal_reason("1", "client", "ann") == ""
    assert authority.refusal_reason("2", "client", "any-name") == ""
    assert authority.refusal_reason("1", "client", "bob") == "the key of ann is not for the name bob"
    assert authority.refusal_reason("3", "head", "e") == "the key of e is for the role edge, not head"
    assert authority.refusal_reason("2", "edge", "e") == "the key of * is for the role client, not edge"
    assert authority.refusal_reason("4", "client", "ann") == "the key of ann is no longer authorised"


def test_a_client_may_have_connections_without_a_name_of_their_own():
    """A library makes one up for each; whose they are says the key alone."""
    known = {"1": KeyIdentity("client", "ann"), "2": KeyIdentity("edge", "edge-0")}
    authority = AuthorizedKeys(Path("none"), known)
    assert authority.refusal_reason("1", "client", "~host-7-c0ffee") == ""
    assert authority.identity_of("1") == "ann"
    assert "not for the name" in authority.refusal_reason("2", "edge", "~host-7-c0ffee")
    assert "not for the name" in authority.refusal_reason("1", "client", "host~7")


def test_the_names_of_brokers_are_not_for_clients():
    known = {
        "1": ("client", "*"),
        "2": ("edge", "e-0"),
        "3": ("head", "h"),
        "4": ("mediator", "m"),
        "5": ("client", "a"),
    }
    authority = AuthorizedKeys(Path("none"), {key: KeyIdentity(*each) for key, each in known.items()})
    for name in ("e-0", "h", "m"):
        assert authority.refusal_reason("1", "client", name) == (
            f"'{name}' is the name of a broker; give the client a name of its own"
        )
    assert authority.refusal_reason("1", "client", "a") == "", "links are told apart by their keys"
    assert authority.refusal_reason("2", "edge", "e-0") == ""


def test_an_identity_is_the_name_beside_the_key_or_the_key_itself(tmp_path: Path):
    path = tmp_path / "authorized"
    path.write_text(f"{KEY} client ann names=desk-,feed-\n{OTHER} client * names=desk-\n")
    authority = AuthorizedKeys.read(str(path))
    assert [authority.identity_of(key) for key in (KEY, OTHER, "x")] == ["ann", f"*{OTHER}", "*x"]
    assert authority.name_grants == NameGrants({"desk-": frozenset({"ann", f"*{OTHER}"}), "feed-": frozenset({"ann"})})


def test_who_may_do_nothing_need_not_come():
    nothing = KeyIdentity("client", "ann", ClientPermissions("ann", publishes=False, subscribes=False))
    authority = AuthorizedKeys(Path("none"), {"1": nothing})
    assert "ann may neither publish nor subscribe" in authority.refusal_reason("1", "client", "ann")
    for half in (ClientPermissions("ann", publishes=False), ClientPermissions("ann", subscribes=False)):
        authority.keys["1"] = KeyIdentity("client", "ann", half)
        assert authority.refusal_reason("1", "client", "ann") == ""


# -- libzmq ------------------------------------------------------------------------------------------------------------


class KnowsNobody:
    def callback(self, domain: str, key: bytes) -> bool:
        return False


def stranger_is_heard(domain: str, enforce: bool, handler: bool) -> bool:
    """Whether a CURVE server with these options admits a client whose key is not authorised."""
    context: zmq.Context = zmq.Context()
    authenticator = ThreadAuthenticator(context) if handler else None
    if authenticator is not None:
        authenticator.start()
        authenticator.configure_curve_callback(domain=domain or "*", credentials_provider=KnowsNobody())
    public, secret = zmq.curve_keypair()
    server = context.socket(zmq.PULL)
    server.curve_server, server.curve_secretkey = True, secret
    if domain:
        server.zap_domain = domain.encode()
    server.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, int(enforce))
    events = server.get_monitor_socket(
        zmq.EVENT_HANDSHAKE_SUCCEEDED
        | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        | zmq.EVENT_DISCONNECTED
    )
    server.bind("tcp://127.0.0.1:*")
    client = context.socket(zmq.PUSH)
    client.curve_serverkey = public
    client.curve_publickey, client.curve_secretkey = zmq.curve_keypair()
    client.connect(server.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode())
    try:
        client.send(b"let me in")
        poller = zmq.Poller()
        poller.register(server, zmq.POLLIN)
        poller.register(events, zmq.POLLIN)
        while ready := dict(poller.poll(PATIENCE_MS)):
            if server in ready:
                return True
            event = int.from_bytes(events.recv_multipart()[0][:2], "little")
            if event != zmq.EVENT_HANDSHAKE_SUCCEEDED:
                return False
        raise AssertionError("neither a message nor a refusal")
    finally:
        if authenticator is not None:
            authenticator.stop()
        server.disable_monitor()
        events.close(0)
        context.destroy(0)


@pytest.mark.parametrize(
    ("domain", "enforce", "handler", "heard"),
    [
        ("", False, False, True),
        ("", False, True, False),
        ("", True, False, True),
        ("", True, True, True),
        ("fleet", False, False, True),
        ("fleet", False, True, False),
        ("fleet", True, False, False),
        ("fleet", True, True, False),
    ],
)
def test_only_a_domain_that_is_enforced_fails_closed(domain: str, enforce: bool, handler: bool, heard: bool):
    """The table that the options of `SocketLane` rely on; a libzmq that behaves otherwise is found here."""
    before = threading.active_count()
    assert stranger_is_heard(domain, enforce, handler) == heard
    assert threading.active_count() <= before, "its threads have ended"


def test_all_domains_are_named_and_have_their_roles():
    assert authorized_keys.ADMITTED.keys() == {DATA_DOMAIN, CONTROL_DOMAIN, FEED_DOMAIN}
    assert set().union(*authorized_keys.ADMITTED.values()) == set(authorized_keys.ROLES)
