"""`python -m plimsoll.sparkjobs accuracy`: forecasts of sessions compared with measurement, by metric and estimator.

The metric is what a session relieved (input, match or output); the estimator made the forecast (Press, Ring). Accuracy
is 1 - |measured - predicted| / measured, as in PADRES 2006, section 6. It means nothing where the measured value is
close to 0; there only the error is reported, in the unit of the quantity.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from plimsoll.sparkjobs import telemetry_source
from plimsoll.sparkjobs.spark_session import make_spark_session
from plimsoll.sparkjobs.tables import write_json
from plimsoll.telemetry.schema import MAJOR, SESSIONS

QUANTITIES: Final = {
    "utilization": ("utilization_predicted", "utilization_measured"),
    "input": ("input_predicted", "input_measured"),
    "output": ("output_predicted", "output_measured"),
    "matchSeconds": ("match_predicted_seconds", "match_measured_seconds"),
}
LEAST_MEASURED: Final = {"utilization": 0.01, "input": 0.01, "output": 0.01, "matchSeconds": 1e-7}
"""For smaller measured values no accuracy is computed."""


def executed_sessions(sessions: DataFrame, fleet: str) -> DataFrame:
    """One row for each executed session of the fleet that succeeded; of several rows the one received last."""
    newest = Window.partitionBy("uid").orderBy(F.desc("received_us"), "collector")
    return (
        sessions.where((F.col("schema") == MAJOR) & (F.col("fleet") == fleet) & (F.col("mode") == "Execute"))
        .withColumn("_copy", F.row_number().over(newest))
        .where("_copy = 1 and phase = 'Succeeded'")
        .drop("_copy")
    )


def predicted_and_measured(sessions: DataFrame) -> DataFrame:
    """uid, metric, estimator, policy, quantity, predicted, measured: a row for each edge and quantity that has both.

    The time of a drain is a quantity of the session and has one row.
    """
    quantities = F.array(
        *(
            F.struct(
                F.lit(name).alias("quantity"), F.col(f"edge.{predicted}").alias("predicted"),
                F.col(f"edge.{measured}").alias("measured"),
            )
            for name, (predicted, measured) in QUANTITIES.items()
        )
    )  # fmt: skip
    about = ["uid", "metric", "estimator", "policy"]
    of_edges = (
        sessions.select(*about, F.explode("edges").alias("edge"))
        .select(*about, F.explode(quantities).alias("one"))
        .select(*about, "one.*")
    )
    drains = sessions.select(
        *about, F.lit("drainSeconds").alias("quantity"), F.col("drain_predicted_seconds").alias("predicted"),
        F.col("drain_measured_seconds").alias("measured"),
    )  # fmt: skip
    return of_edges.unionByName(drains).where("predicted is not null and measured is not null")


def accuracy_table(found: DataFrame) -> DataFrame:
    """metric, estimator, quantity, sessions, n, error, bias, p95_error, accuracy (null: measured values close to 0)."""
    least = F.lit(0.001)
    for name, value in LEAST_MEASURED.items():
        least = F.when(F.col("quantity") == name, F.lit(value)).otherwise(least)
    error = F.abs(F.col("measured") - F.col("predicted"))
    relative = F.when(F.abs(F.col("measured")) >= least, 1 - error / F.abs(F.col("measured")))
    return (
        found.withColumn("_error", error)
        .withColumn("_relative", relative)
        .groupBy("metric", "estimator", "quantity")
        .agg(
            F.countDistinct("uid").alias("sessions"),
            F.count(F.lit(1)).alias("n"),
            F.avg("_error").alias("error"),
            F.avg(F.col("predicted") - F.col("measured")).alias("bias"),
            F.expr("percentile(_error, 0.95)").alias("p95_error"),
            F.avg("_relative").alias("accuracy"),
        )
        .orderBy("metric", "estimator", "quantity")
    )


def run(spark: SparkSession, root: Path, fleet: str, output: Path) -> list[dict[str, Any]]:
    """Read the session rows below the root; write the table as JSON."""
    sessions = telemetry_source.read_files(
        spark, telemetry_source.finished_files(root / SESSIONS), telemetry_source.outcomes_schema()
    )
    found = [
        row.asDict() for row in accuracy_table(predicted_and_measured(executed_sessions(sessions, fleet))).collect()
    ]
    write_json(output, {"schema": "plimsoll.accuracy/1", "fleet": fleet, "rows": found})
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs accuracy", description=__doc__)
    parser.add_argument("root", type=Path, help="folder that has raw/")
    parser.add_argument("output", type=Path, help="file for the table, as JSON")
    parser.add_argument("--fleet", required=True, help="name of the fleet")
    asked = parser.parse_args(arguments)
    with make_spark_session("plimsoll-accuracy", quick=True) as spark:
        run(spark, asked.root, asked.fleet, asked.output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
