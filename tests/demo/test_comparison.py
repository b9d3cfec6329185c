"""The table of policies: what is taken from each report, and how it reads."""

from plimsoll.demo import comparison


def report(policy="padres", again=None, input_=0.5):
    series = {"seconds": [30.0, 38.0, 39.5], "input_utilization": [2.0, input_, input_],
              "output_utilization": [0.2] * 3, "match_delay_seconds": [0.001] * 3}  # fmt: skip
    return {
        "policy": policy, "converged_at_seconds": 15.0, "converged_again_at_seconds": again,
        "share_of_detections_balanced_after": 0.875, "delivery_delay_seconds": {"p50": 0.0214, "p99": 7.1},
        "sessions": [{"subscribers": 1200}, {"subscribers": 800}],
        "overhead_ratio": {"converging": 0.0126, "steady": 0.002}, "delivered": 1_234_567, "lost": 0, "duplicated": 0,
        "reordered": 0, "durations": {"traffic_seconds": 40.0},
        "brokers": {"h": {"role": "head", "series": series}, "b1": {"role": "edge", "series": series}},
    }  # fmt: skip


def test_a_row_has_what_a_report_shows():
    found = comparison.comparison_row(report())
    assert (found["policy"], found["subscribers_moved"], found["overloaded_at_the_end"]) == ("padres", 2000, [])
    assert comparison.comparison_row(report(input_=1.4))["overloaded_at_the_end"] == ["b1"]


def test_the_table_stands_in_columns():
    rows = [comparison.comparison_row(report("off", input_=3.0)), comparison.comparison_row(report(again=32.0))]
    lines = comparison.comparison_table(rows).splitlines()
    assert lines[0].split()[:3] == ["policy", "converged", "again"]
    assert lines[1].split()[:3] == ["off", "15", "s"]
    assert "never" in lines[1]
    assert "b1" in lines[1]
    assert "32 s" in lines[2]
    assert "7,100 ms" in lines[2]
    assert len({len(line) for line in lines}) == 1
