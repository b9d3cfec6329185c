from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder


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
        ["edge", "client"], ["head", "h"], ["mediator", "local.supervisor"], ["mediator", "local.mediator"],
        ["client", "*"],
    ]  # fmt: skip
    assert lines[0][0] == keys.key_pair(folder, "client").public
    assert lines[4][0] == keys.key_pair(folder, keys.CLIENTS).public
    keys.write_authorized_keys(folder, [])
    assert len(folder.authorized_keys.read_text().splitlines()) == 3


def test_private_files_are_private_even_when_they_replace_others(tmp_path):
    file = tmp_path / "x"
    file.write_text("old")
    file.chmod(0o644)
    keys.write_private(file, "new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
