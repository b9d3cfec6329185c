"""The model against the machines of brokers and clients, record by record: the same plan, the same resources."""

import pytest
from bench.queueing.__main__ import METRICS, mean_load, modelled, record_level
from msgspec import structs

from plimsoll.demo import quotes
from plimsoll.demo.options import BALANCING_SCENARIO

SHORT = structs.replace(BALANCING_SCENARIO, seconds=16.0, subscribers=80, step_at=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("edge", ["b4", "b1"])
def test_loads_delays_and_deliveries_agree(edge):
    """b4 is the strongest edge; at b1 the same subscribers are nearly too many."""
    scenario, streams = structs.replace(SHORT, prefer=edge), quotes.load()
    machines, model = record_level(scenario, streams, "off"), modelled(scenario, streams, "off")
    for metric in METRICS:
        loads = [mean_load(run["series"], edge, metric, 6.0, 16.0) for run in (machines, model)]
        assert loads[1] == pytest.approx(loads[0], abs=0.02)
        assert loads[0] > 0.01
    assert model["delay_p50"] == pytest.approx(machines["delay_p50"], rel=0.1)
    assert model["delivered"] == pytest.approx(machines["delivered"], rel=0.01)


@pytest.mark.slow
def test_the_first_session_is_the_same():
    """Later ones may differ: by then a publication more or less makes a plan choose another subscriber."""
    scenario, streams = structs.replace(SHORT, seconds=12.0, subscribers=200), quotes.load()
    found = [
        [
            (one.source, one.target, one.metric)
            for one in run(scenario, streams, "padres")["sessions"]
            if one.subscribers
        ]
        for run in (record_level, modelled)
    ]
    assert found[0]
    assert found[0][0] == found[1][0]
