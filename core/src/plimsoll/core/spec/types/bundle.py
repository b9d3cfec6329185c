"""The specification of a Bundle: which topics it holds. The fleet writes these objects, users read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from plimsoll.core.spec.field_info import FieldInfo, NamedReference


@dataclass(frozen=True, kw_only=True)
class BundleSpec:
    """A bundle of topics of a cluster whose policy has bundles. The fleet writes it; edits are undone."""

    cluster_ref: Annotated[NamedReference, FieldInfo("Its cluster.", refers="BrokerCluster")]
    range: Annotated[
        str,
        FieldInfo(
            "The range of the hashes of its topics; the last range of a cluster includes its end.",
            pattern="0x[0-9a-f]{8}_0x[0-9a-f]{8}",
            form="a range such as 0x00000000_0x80000000",
            max_length=21,
        ),
    ]
