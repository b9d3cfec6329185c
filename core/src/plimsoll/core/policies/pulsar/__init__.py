"""Load balancing of Apache Pulsar (2023): bundles of topics, their lookup, split and shedding.

`splitting` says when and where a bundle
is split, `usage` and `shedding` which edges give bundles up, `placer` who takes one, `fleet` the values of a plan, and
`policy` all of it together. docs/pulsar.md has them clause by clause.
"""

from plimsoll.core.policies.pulsar.policy import Pulsar

__all__ = ["Pulsar"]
