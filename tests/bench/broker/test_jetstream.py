"""The comparison with JetStream: its table, its settings, and the files of servers; no server runs here."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.broker import jetstream, nats_servers
from bench.broker.durable import medians
from bench.broker.jetstream import SETTINGS, chosen, held, table
from bench.broker.nats_servers import configuration, find_program

SLOW = {"publications_per_second": 100.0, "server_cpu_us": 50.0, "end_cpu_us": 10.0}
RUN = {
    "publications_per_second": 1000.0, "server_cpu_us": 20.0, "end_cpu_us": 10.0,
    "p50_ms": 1.0, "p99_ms": 4.0, "server_cpu_us_at_rate": 90.0,
}  # fmt: skip


def test_a_figure_that_a_run_lacks_has_no_median():
    assert medians([RUN, {**RUN, "p99_ms": 8.0}, {**RUN, "p99_ms": 6.0}])["p99_ms"] == 6.0
    assert "p99_ms" not in medians([RUN, SLOW])
    assert medians([RUN, SLOW])["publications_per_second"] == 550.0


def test_the_table_has_each_setting_beside_memory():
    memory, synced = table({"memory": [RUN], "R1 always": [SLOW, SLOW]}).splitlines()[2:]
    assert memory.startswith("| memory | the head has it in memory | 1,000 (1,000 to 1,000) | 1.00 |")
    assert memory.endswith("| 20 us | 90 us | 10 us | 1.0 ms | 4.0 ms |")
    assert synced.startswith("| R1 always | it is synced | 100 (100 to 100) | 0.10 | 50 us | below the rate | 10 us |")
    assert synced.endswith("| below the rate | below the rate |")


def test_what_heads_held_is_told_of_those_that_hold_anything():
    waits = {"held_p50_ms": 0.25, "held_p99_ms": 1.5}
    synced = {**RUN, **waits, "sync_p50_ms": 0.15, "sync_p99_ms": 0.9}
    assert held({"memory": [RUN], "standby": [{**RUN, **waits}], "Always": [synced]}).splitlines() == [
        "standby: held 0.25 ms, p99 1.50 ms",
        "Always: held 0.25 ms, p99 1.50 ms; one sync 0.15 ms, p99 0.90 ms",
    ]


def test_a_table_without_memory_has_no_ratios():
    assert "|  | 50 us |" in table({"R1": [SLOW]}).splitlines()[2]


def test_without_a_server_only_heads_are_measured():
    assert [each.name for each in chosen(list(SETTINGS), "")] == [
        "memory", "Interval", "Always", "standby", "standby and Always",
    ]  # fmt: skip
    assert len(chosen(list(SETTINGS), "/bin/nats-server")) == len(SETTINGS)


def test_without_a_server_the_bench_says_how_to_build_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv(nats_servers.PROGRAM, "/nowhere/nats-server")
    assert find_program() == ""
    assert jetstream.main(["--settings", "R1"]) == 1
    assert "run scripts/build_nats.sh" in capsys.readouterr().err


def test_a_server_of_three_knows_the_two_others_and_syncs_if_asked():
    text = configuration("n1", Path("/logs"), 4001, [5000, 5001, 5002], 5001, is_synced=True)
    assert 'jetstream: { sync_interval: always, store_dir: "/logs/n1" }' in text
    assert 'routes: ["nats://127.0.0.1:5000", "nats://127.0.0.1:5002"]' in text
    alone = configuration("n0", Path("/logs"), 4000, [], 0, is_synced=False)
    assert "sync_interval" not in alone
    assert "cluster" not in alone
