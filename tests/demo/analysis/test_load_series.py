"""Reports become columns of one length; what comes twice or late is left out."""

from plimsoll.demo.analysis.load_series import METRICS, LoadSeries


def report(**more):
    return {"broker": "b1", "epoch": 7, "seq": 1, "state": "OK", "input_rate": 2.5, "subscribers": 3, **more}


def test_a_report_is_a_row():
    series = LoadSeries(start=10.0)
    assert series.take(report(), 11.25)
    assert series.take(report(seq=2, state="BUSY", subscribers=4), 12.25)
    columns = series.of("b1")
    assert columns["seconds"] == [1.25, 2.25]
    assert columns["state"] == ["OK", "BUSY"]
    assert columns["subscribers"] == [3, 4]
    assert columns["match_delay_seconds"] == [0, 0]
    assert {len(column) for column in columns.values()} == {2}
    assert series.latest["b1"]["seq"] == 2


def test_repeated_and_late_reports_are_left_out_and_a_restart_is_not():
    series = LoadSeries()
    assert series.take(report(seq=5), 1.0)
    assert not series.take(report(seq=5), 2.0)
    assert not series.take(report(seq=4), 3.0)
    assert series.take(report(epoch=8, seq=1), 4.0)
    assert series.of("b1")["seconds"] == [1.0, 4.0]


def test_a_broker_that_never_reported_has_empty_columns():
    assert LoadSeries().of("b9") == {key: [] for key in ("seconds", "state", *METRICS)}
