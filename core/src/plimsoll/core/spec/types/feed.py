"""Feeds: a subscription whose publications are recorded as a dataset of Parquet files."""

# ruff: noqa: RUF009  # quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from plimsoll.core.spec.field_info import FieldInfo
from plimsoll.core.spec.quantities import Duration, Quantity

ColumnType = Literal["String", "Integer", "Number", "Boolean"]

RESERVED_COLUMNS: Final = (
    "_row", "_publisher", "_incarnation", "_seq", "_head", "_head_epoch", "_offset", "_sent", "_recorded", "_payload",
    "recorded_day", "recorded_hour",
)  # fmt: skip
"""Columns of every dataset, and of its folders. No attribute can have these names in a dataset."""

STORE_PLACE: Final = r"s3a?://[^/]+/.*[^/].*"
STORE_PLACE_FORM: Final = "s3a://BUCKET/PREFIX"


@dataclass(frozen=True, kw_only=True)
class FeedColumnSpec:
    """One attribute as a column."""

    name: Annotated[
        str,
        FieldInfo("The attribute.", pattern="[A-Za-z_][A-Za-z0-9_.-]*", form="the name of an attribute, such as price",
                  max_length=256),
    ]  # fmt: skip
    type: Annotated[
        ColumnType,
        FieldInfo("The type of its values. Number takes whole numbers, too, up to 2^53; Integer has 64 bits."),
    ]
    required: Annotated[bool, FieldInfo("A publication without it does not fit; else the column is null there.")] = (
        False
    )


@dataclass(frozen=True, kw_only=True)
class FeedSchemaSpec:
    """The columns of a feed; every feed has the identity, times and payload of each publication beside them."""

    columns: Annotated[
        tuple[FeedColumnSpec, ...], FieldInfo("The attributes that become columns.", key="name", max_items=1000)
    ]
    unknown_attributes: Annotated[
        Literal["DeadLetter", "Drop"],
        FieldInfo("What becomes of a publication with another attribute. DeadLetter: it does not fit. Drop: it is"
                  " recorded without that attribute."),
    ] = "DeadLetter"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FeedRetentionSpec:
    """How long files are kept; without a field, all of them."""

    age: Annotated[Duration | None, FieldInfo("Files recorded longer ago are deleted.", above=0)] = None
    size: Annotated[
        Quantity | None, FieldInfo("The oldest files are deleted while all are larger.", unit="bytes", above=0)
    ] = None


@dataclass(frozen=True, kw_only=True)
class FeedSpec:
    """A subscription whose publications become a dataset of Parquet files, each publication in it exactly once.

    The fleet runs a recorder for it: a process on one machine, and a pod on Kubernetes, where the BrokerFleet names the
    volume in `datasets`.
    """

    subscription: Annotated[
        str, FieldInfo("Which publications, as in `[class,=,'STOCK'],[price,>,25.0]`.", max_length=8192)
    ]
    path: Annotated[
        str,
        FieldInfo("Folder of the dataset, or a place in an object store, as s3a://BUCKET/PREFIX. Relative: below the"
                  " folder of the fleet, or its volume, where no other folder is allowed; empty: `feeds/NAME` there.",
                  max_length=4096),
    ] = ""  # fmt: skip
    schema: Annotated[
        FeedSchemaSpec | None,
        FieldInfo("The columns; absent: inferred from the first publications, and then held to."),
    ] = None
    commit_interval: Annotated[
        Duration, FieldInfo("How long publications wait at most to become readable.", low=1, high=3600)
    ] = Duration.parse("10s")
    retain: Annotated[FeedRetentionSpec, FieldInfo("What is kept.")] = FeedRetentionSpec()
