"""Channels: one query over feeds and stored tables, to whose results subscribers subscribe by parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from plimsoll.core.spec.field_info import FieldInfo, name_field
from plimsoll.core.spec.quantities import Duration
from plimsoll.core.spec.types.feed import ColumnType

CHANNEL_ATTRIBUTE: Final = "channel"
"""Subscriptions to a channel and its results have its name in this attribute."""
BATCH_ATTRIBUTE: Final = "batch"
ROW_ATTRIBUTE: Final = "batch_row"
RESULT_ATTRIBUTES: Final = (CHANNEL_ATTRIBUTE, BATCH_ATTRIBUTE, ROW_ATTRIBUTE)
"""Every result has these beside the columns of the query: together they are its identity."""
PARAMETERS_VIEW: Final = "parameters"

_VIEW: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_VIEW_FORM: Final = "letters, digits and '_', not beginning with a digit"


@dataclass(frozen=True, kw_only=True)
class ChannelParameterSpec:
    """One parameter: a column of the view `parameters`, and an attribute of every result."""

    name: Annotated[
        str,
        FieldInfo("The parameter, which is also the attribute that subscriptions give a value to.", pattern=_VIEW,
                  form=_VIEW_FORM, max_length=64),
    ]  # fmt: skip
    type: Annotated[ColumnType, FieldInfo("The type of its values.")]


@dataclass(frozen=True, kw_only=True)
class ChannelFeedSpec:
    """One feed as a view of the query."""

    name: Annotated[
        str, FieldInfo("The name of the view.", pattern=_VIEW, form=_VIEW_FORM, max_length=64)
    ]  # fmt: skip
    feed: Annotated[str, name_field("The feed.", refers="Feed")]
    rows: Annotated[
        Literal["New", "All"],
        FieldInfo("Which rows a batch sees. New: those recorded since the batch before, each in one batch. All: all"
                  " that the feed keeps."),
    ] = "New"  # fmt: skip
    within: Annotated[
        Duration | None,
        FieldInfo("With `rows: All`: only rows recorded within this time before the batch.", above=0),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ChannelTableSpec:
    """One stored table as a view of the query; each batch reads it as it then is."""

    name: Annotated[
        str, FieldInfo("The name of the view.", pattern=_VIEW, form=_VIEW_FORM, max_length=64)
    ]  # fmt: skip
    path: Annotated[
        str, FieldInfo("A file or folder, or a place in an object store, as s3a://BUCKET/PREFIX. A relative path is"
                       " below the folder of the fleet, or below its volume; on Kubernetes no other path is allowed.",
                       max_length=4096)
    ]  # fmt: skip
    format: Annotated[
        Literal["Parquet", "Csv", "Json"],
        FieldInfo("Csv has a line of names, and its types are inferred; Json has one object in each line."),
    ] = "Parquet"


@dataclass(frozen=True, kw_only=True)
class ChannelSpec:
    """A query with parameters over feeds and tables. Subscribers ask for its results as for any publication.

    `[channel,=,'emergencies-near'],[kind,=,'fire']` subscribes to the channel `emergencies-near` with `fire` for its
    parameter `kind`. The fleet runs one driver for all of its channels: a process on one machine, and a pod on
    Kubernetes, where the BrokerFleet names the volume in `datasets`.
    """

    parameters: Annotated[
        tuple[ChannelParameterSpec, ...],
        FieldInfo("What subscriptions choose by.", key="name", max_items=16),
    ]
    feeds: Annotated[
        tuple[ChannelFeedSpec, ...],
        FieldInfo("The feeds that the query reads; with `rows: New` at least one of them.", key="name", max_items=16),
    ]
    tables: Annotated[
        tuple[ChannelTableSpec, ...], FieldInfo("Stored tables that the query reads.", key="name", max_items=32)
    ] = ()
    query: Annotated[
        str,
        FieldInfo("One query in Spark SQL. It sees the view `parameters`, with one row for each combination of values"
                  " that is subscribed to, and the views of feeds and tables; it returns all parameters and the"
                  " columns of the results.", max_length=65536),
    ]  # fmt: skip
    mode: Annotated[
        Literal["Continuous", "Repetitive"],
        FieldInfo("Continuous: a batch as soon as a feed has new rows. Repetitive: one batch every period."),
    ] = "Continuous"
    every: Annotated[
        Duration | None, FieldInfo("The period of a Repetitive channel.", low=1, high=86400)
    ] = None  # fmt: skip
    unkeyed_joins: Annotated[
        Literal["Refuse", "Allow"],
        FieldInfo("What becomes of a query that joins without an equality between columns: its cost is the product of"
                  " all rows and all parameters."),
    ] = "Refuse"  # fmt: skip
