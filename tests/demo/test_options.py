"""Options: given values, defaults, and refusals."""

import pytest

from plimsoll.core.spec import parse as parse_resources
from plimsoll.demo.options import BALANCING_SCENARIO, parse, resource_folder
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests


def test_without_options_it_is_the_experiment():
    options = parse([])
    assert (options.scenario, options.balance) == (BALANCING_SCENARIO, "padres")
    assert str(options.report) == "demo-report"
    assert not options.plain


def test_every_option_is_heeded():
    options = parse(
        ["--place", "--seconds", "4.5", "--subscribers", "50", "--publishers", "3", "--seed", "9", "--report", "r",
         "--plain", "--clients", "1", "-f", "one.yaml", "-f", "two.yaml"]
    )  # fmt: skip
    assert options.scenario == DemoScenario(seconds=4.5, subscribers=50, publishers=3, seed=9)
    assert (str(options.report), options.plain, options.clients, options.files) == (
        "r", True, 1, ("one.yaml", "two.yaml"),
    )  # fmt: skip


def test_placing_is_the_short_one():
    options = parse(["--place"])
    assert (options.scenario, options.balance) == (DemoScenario(), None)


@pytest.mark.parametrize(
    "wrong",
    [["--seconds", "0"], ["--balance", "x"], ["--seconds", "nan"], ["--seconds", "x"], ["--subscribers", "0"],
     ["--publishers", "54"], ["--publishers", "1.5"], ["--seed", "-1"], ["--clients", "0"], ["--no-such"], ["more"]],
    ids=" ".join,
)  # fmt: skip
def test_a_wrong_option_is_refused_with_code_2(wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(wrong)
    assert ended.value.code == 2
    assert wrong[0].removeprefix("--no-such") in capsys.readouterr().err


def test_the_fleet_has_the_proportions_of_the_paper():
    """PADRES 2006, 6.2: processors of 2 GHz and 100, 200, 400, 1000 MHz; 10 and 0.6, 1.2, 2.4, 6 Mbit/s, four times."""
    fleet = parse_resources(manifests.load([str(resource_folder())]))
    profiles = {name: profile.spec for name, profile in fleet.profiles.items()}
    megahertz = {"b0": 2000, "b1": 100, "b2": 200, "b3": 400, "b4": 1000}
    megabits = {"b0": 10.0, "b1": 0.6, "b2": 1.2, "b3": 2.4, "b4": 6.0}
    for name, profile in profiles.items():
        emulation = profile.emulation
        assert emulation is not None
        assert float(profile.cpu.value) == megahertz[name] / 1000
        assert emulation.base.seconds * megahertz[name] == pytest.approx(0.1)
        assert emulation.per_subscription.seconds * megahertz[name] == pytest.approx(0.004)
        for rate in (profile.bandwidth.input_bytes_per_second, profile.bandwidth.output_bytes_per_second):
            assert rate is not None
            assert float(rate.value) == pytest.approx(megabits[name] * 1e6 / 8 * DemoScenario().rate_factor)
    (cluster,) = fleet.clusters.values()
    assert [(group.name, group.profile) for group in cluster.spec.edges] == [(f"b{i}", f"b{i}") for i in range(1, 5)]
