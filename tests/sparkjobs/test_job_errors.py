"""Failures of Spark in one line, without a Java trace."""

from __future__ import annotations

import pytest

from plimsoll.sparkjobs.job_errors import cause_of, error_line, is_java_gone, is_spark_error, wants_trace

CORRUPT = """Job aborted due to stage failure: Task 1 in stage 2.0 failed 1 times, most recent failure: Lost task
(TID 3) (localhost executor driver): org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while
reading file file:///data/raw/v1/incoming/c0-0001.parquet. SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:856)
Caused by: java.lang.RuntimeException: file:/data/raw/v1/incoming/c0-0001.parquet is not a Parquet file. No magic
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:618)
"""
IN_PYTHON = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function of the sink.
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/opt/live.py", line 190, in write
plimsoll.sparkjobs.job_errors.JobInputError: /data/raw/v1/expected.json is of fleet a; expected b: check --fleet

\tat py4j.Protocol.getReturnValue(Protocol.java:476)
"""


def test_a_file_that_cannot_be_read_is_named_with_the_remedy():
    line = error_line("history", RuntimeError(CORRUPT))
    assert line == (
        "history: /data/raw/v1/incoming/c0-0001.parquet is not a Parquet file. No magic; move that file out of"
        " its folder, or write it again"
    )


def test_an_error_of_python_within_java_is_itself():
    line = error_line("live", RuntimeError(IN_PYTHON))
    assert line.startswith("live: /data/raw/v1/expected.json is of fleet a; expected b: check --fleet")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.", "move its folder away"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/data/x. SQLSTATE: 42K03", "check the path"),
        ("java.io.IOException: No space left on device", "free space"),
        ("java.lang.OutOfMemoryError: Java heap space", "spark.driver.memory"),
        ("something else\n\tat org.apache.X.y(X.java:1)", "PLIMSOLL_TRACE=1 shows the whole trace"),
    ],
)
def test_each_kind_of_failure_has_a_remedy_and_no_trace(text: str, remedy: str):
    line = error_line("compact", RuntimeError(text))
    assert line.startswith("compact")
    assert remedy in line
    assert "\n" not in line
    assert "java." not in line
    assert "\tat" not in line


def test_the_cause_alone_has_no_job_and_no_remedy():
    assert cause_of(RuntimeError(IN_PYTHON)) == "/data/raw/v1/expected.json is of fleet a; expected b: check --fleet"
    assert cause_of(RuntimeError(CORRUPT)).startswith("/data/raw/v1/incoming/c0-0001.parquet is not a Parquet file")


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred while calling o1.start.\n: java.io.IOException: /data/1 is read-only\n\tat java.io.X.y(X)",
        "[STREAM_FAILED] Query [id = 0a39-66, runId = 46c9-de] terminated with exception: /data/1 is read-only",
    ],
)
def test_the_cause_of_a_query_that_does_not_start_is_without_the_names_of_the_bridge_to_java(text: str):
    assert cause_of(RuntimeError(text)) == "/data/1 is read-only"


def test_a_java_that_has_ended_is_told_from_an_error_in_it():
    gone = type("Py4JNetworkError", (Exception,), {"__module__": "py4j.protocol"})()
    failed = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})()
    assert [(is_java_gone(each), is_spark_error(each)) for each in (gone, failed)] == [(True, True), (False, True)]
    assert not is_java_gone(ConnectionError())


def test_a_failure_without_a_text_names_its_kind():
    assert error_line("audit", RuntimeError()).startswith("audit: RuntimeError")


def test_traces_are_shown_to_those_who_ask():
    assert wants_trace({"PLIMSOLL_TRACE": "1"})
    assert not wants_trace({"PLIMSOLL_TRACE": "0"})
    assert not wants_trace({})
