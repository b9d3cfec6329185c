"""The small Spark of the tests of jobs, for the tests of channels that need one."""

from tests.sparkjobs.conftest import spark

__all__ = ["spark"]
