from pathlib import Path

import pytest

from plimsoll.core.spec.types.fleet import ClientSpec
from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import StateWriteError, write_private
from plimsoll.network.auth.authorized_keys import AuthorizedKeys, parse_authorized_keys


def test_a_pair_is_made_once(home):
    folder = FleetFolder.of("f")
    folder.make()
    first = keys.key_pair(folder, "a")
    assert (len(first.public), len(first.secret())) == (40, 40)
    assert keys.key_pair(folder, "a") == first
    assert keys.key_pair(folder, "b").public != first.public
    first.secret_file.unlink()
    assert keys.key_pair(folder, "a").public != first.public


def test_authorized_keys_name_every_identity_and_no_other(home):
    folder = FleetFolder.of("f")
    folder.make()
    keys.write_authorized_keys(folder, [("client", "edge"), ("h", "head")])
    lines = [line.split() for line in folder.authorized_keys.read_text().splitlines()]
    assert [line[1:] for line in lines] == [
        ["client", "*"],
        ["client", "local.channels", "publish", "names=channel."],
        ["client", "local.recorder", "subscribe", "names=recorder."], ["edge", "client"], ["head", "h"],
        ["mediator", "local.mediator"], ["mediator", "local.supervisor"],
    ]  # fmt: skip
    assert lines[0][0] == keys.key_pair(folder, keys.CLIENTS).public
    assert lines[3][0] == keys.key_pair(folder, "client").public
    keys.write_authorized_keys(folder, [])
    assert len(folder.authorized_keys.read_text().splitlines()) == 5


def test_a_client_that_the_fleet_names_has_a_key_of_its_own_with_its_rights(home):
    folder = FleetFolder.of("f")
    folder.make()
    named = [ClientSpec(name="shelters", roles=("Subscribe",), channels=("fires",)), ClientSpec(name="clients")]
    keys.write_authorized_keys(folder, [], ["local.parameters"], named)
    identities = parse_authorized_keys(folder.authorized_keys.read_text(), "here")
    own = identities[keys.client_key_pair(folder, "shelters").public]
    assert (own.name, own.grant.publishes, own.grant.channels) == ("shelters", False, ("fires",))
    assert identities[keys.client_key_pair(folder, "clients").public].grant.channels is None
    assert identities[keys.key_pair(folder, keys.CLIENTS).public].name == keys.ANY_NAME
    readers = parse_authorized_keys(folder.feed_readers.read_text(), "here")
    assert not readers[keys.key_pair(folder, keys.CLIENTS).public].grant.read_refusal("stocks")
    assert readers[keys.client_key_pair(folder, "shelters").public].grant.read_refusal("stocks")
    assert len(readers) == 5, "of clients alone"


def test_recorders_and_the_driver_of_channels_have_bounded_identities_and_names_of_their_own(home):
    folder = FleetFolder.of("f")
    folder.make()
    keys.write_authorized_keys(folder, [], [keys.PARAMETERS], [ClientSpec(name="shelters")])
    known = AuthorizedKeys.read(str(folder.authorized_keys))
    recorder, channels = (known.keys[keys.key_pair(folder, name).public] for name in (keys.RECORDER, keys.CHANNELS))
    assert (recorder.grant.subscribes, recorder.grant.publishes, recorder.grant.groups) == (True, False, False)
    assert (channels.grant.subscribes, channels.grant.publishes, channels.grant.groups) == (False, True, False)
    assert known.keys[keys.key_pair(folder, keys.PARAMETERS).public].role == "collector"
    user = known.identity_of(keys.key_pair(folder, keys.CLIENTS).public)
    for name, owner in (("recorder.feed-1", keys.RECORDER), ("channel.fires", keys.CHANNELS)):
        others = {user, "shelters", keys.RECORDER, keys.CHANNELS} - {owner}
        assert known.name_grants.permits(owner, name, user), "also one that this user has made earlier"
        assert not any(known.name_grants.permits(other, name, other) for other in others)
    readers = parse_authorized_keys(folder.feed_readers.read_text(), "here")
    for name in (keys.RECORDER, keys.CHANNELS):
        assert readers[keys.key_pair(folder, name).public].grant.read_refusal("f")


def test_a_pair_that_was_half_written_is_made_again(home, monkeypatch):
    folder = FleetFolder.of("f")
    folder.make()
    written: list[Path] = []

    def write(path, text):
        if len(written) == 1:
            raise StateWriteError(path, "no space is left on its disk", "free space there")
        written.append(path)
        write_private(path, text)

    monkeypatch.setattr(keys, "write_private", write)
    with pytest.raises(StateWriteError, match=r"a\.pub"):
        keys.key_pair(folder, "a")
    half = folder.keys.joinpath("a.key").read_text()
    monkeypatch.undo()
    assert keys.key_pair(folder, "a").secret() + "\n" != half
    assert keys.key_pair(folder, "a") == keys.key_pair(folder, "a")
