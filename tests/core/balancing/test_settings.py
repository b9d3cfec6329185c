"""Parameters of brokers: those of the policy, scaled once; a policy that cannot be read is refused."""

from __future__ import annotations

import pytest

from plimsoll.core.balancing.settings import parameters
from plimsoll.core.policies.parameters import Parameters
from plimsoll.core.spec.problems import InvalidResourcesError


def test_parameters_are_on_the_clock_of_the_fleet():
    found = parameters({"type": "Padres"}, 0.5)
    assert found == Parameters().scaled(0.5)
    assert parameters(None, 0.5) is None


def test_a_policy_that_nobody_knows_is_refused():
    with pytest.raises(InvalidResourcesError, match="Padres"):
        parameters({"type": "Pardes"}, 1.0)
