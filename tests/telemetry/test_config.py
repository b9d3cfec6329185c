"""A collector's configuration is read whole or refused with its field and a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from plimsoll.core.config import LinkSecurity, PeerBroker
from plimsoll.telemetry.config import (
    CollectorConfig,
    CollectorConfigError,
    MonitoredCluster,
    encode_config,
    read_config,
)

HEAD = MonitoredCluster(head=PeerBroker(name="h", control="tcp://127.0.0.1:1"), brokers=("h", "e1"))


def config(**changes: Any) -> CollectorConfig:
    plain = CollectorConfig(
        name="c0", fleet="f", folder="/data", security=LinkSecurity(plain=True), clusters={"c": HEAD}
    )
    return msgspec.structs.replace(plain, **changes)


def test_what_is_written_is_read(tmp_path: Path):
    (tmp_path / "c.json").write_bytes(encode_config(config(index=1, collectors=3)))
    assert read_config(tmp_path / "c.json") == config(index=1, collectors=3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"index": 1}, "index: 1 is not below collectors"),
        ({"http": "localhost"}, "http: 'localhost' is no HOST:PORT"),
        ({"security": LinkSecurity()}, "security.secret_key_file: is not set"),
        ({"clusters": {"c": MonitoredCluster(head=PeerBroker(name="h", control="h:1"))}}, "clusters.c.head.control"),
        ({"security": LinkSecurity(secret_key_file="k")}, "clusters.c.head.public_key"),  # noqa: S106  # the name of a file
        ({"name": "C 0"}, r"\$.name"),
        ({"interval_seconds": 0.0}, r"\$.interval_seconds"),
    ],
)
def test_what_cannot_be_used_is_refused_by_field(tmp_path: Path, changes: dict[str, Any], words: str):
    (tmp_path / "c.json").write_bytes(encode_config(config(**changes)))
    with pytest.raises(CollectorConfigError, match=words):
        read_config(tmp_path / "c.json")


def test_a_missing_file_and_an_unknown_field_are_named(tmp_path: Path):
    with pytest.raises(CollectorConfigError, match=r"cannot read .*none\.json"):
        read_config(tmp_path / "none.json")
    (tmp_path / "c.json").write_text('{"name": "c0", "fleet": "f", "folder": "/d", "colour": 1}')
    with pytest.raises(CollectorConfigError, match="colour"):
        read_config(tmp_path / "c.json")


def test_collectors_share_the_clusters():
    clusters = {f"c{number}": HEAD for number in range(40)}
    shares = [set(config(clusters=clusters, collectors=3, index=index).share) for index in range(3)]
    assert set.union(*shares) == set(clusters)
    assert sum(map(len, shares)) == 40


def test_the_fold_waits_for_slow_reports():
    assert [config(report_seconds=seconds).fresh_seconds for seconds in (0.1, 1.0, 5.0, 60.0)] == [5, 5, 12, 150]


@pytest.mark.parametrize(("http", "address"), [("0.0.0.0:80", ("0.0.0.0", 80)), ("[::1]:7", ("::1", 7))])  # noqa: S104  # an address that a user may give
def test_the_address_of_the_service(http: str, address: tuple[str, int]):
    assert config(http=http).address == address


def test_several_read_one_file_and_know_who_they_are(tmp_path: Path):
    (tmp_path / "c.json").write_bytes(encode_config(config(collectors=3)))
    found = read_config(tmp_path / "c.json", "quotes-telemetry-2")
    assert (found.name, found.index) == ("quotes-telemetry-2", 2)
    with pytest.raises(CollectorConfigError, match="index: 3 is not below collectors, 3"):
        read_config(tmp_path / "c.json", "quotes-telemetry-3")
    with pytest.raises(CollectorConfigError, match="--name: 'telemetry' does not end"):
        read_config(tmp_path / "c.json", "telemetry")
