"""The prediction on the page: a row for each figure, and the reason where there is none."""

from typing import Any

from plimsoll.demo.report.prediction_page import section


def pair(predicted: float | None, measured: float | None) -> dict[str, float | None]:
    return {"predicted": predicted, "measured": measured}


def found(**more: Any) -> dict[str, Any]:
    edges = {
        "b1": {
            "input_utilization": pair(0.32, 0.3), "output_utilization": pair(None, 0.1),
            "output_rate": pair(600.4, 590.0),
        },
    }  # fmt: skip
    delays = {"p99": pair(0.0053, 0.0158)}
    return {"prediction": {"begin_seconds": 92.6, "end_seconds": 111.5, "edges": edges, "delay_seconds": delays}} | more


def test_predicted_measured_and_the_difference():
    text = "".join(section(found()))
    assert "<td>b1, input utilisation</td><td>32.0 %</td><td>30.0 %</td><td>+2.0 %</td>" in text
    assert "<td>b1, output utilisation</td><td>-</td><td>10.0 %</td><td>-</td>" in text
    assert "<td>b1, deliveries per second</td><td>600</td><td>590</td><td>+10</td>" in text
    assert "<td>delivery delay, p99</td><td>5.3 ms</td><td>15.8 ms</td><td>-10.5 ms</td>" in text
    assert "At 93 s" in text


def test_a_run_without_one_says_nothing_and_a_fault_is_said():
    assert section({}) == []
    text = "".join(section({"prediction": {"fault": "plimsoll world: <no fleet>"}}))
    assert "There is no prediction: plimsoll world: &lt;no fleet&gt;" in text
