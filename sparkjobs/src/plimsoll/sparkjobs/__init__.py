"""Spark jobs over telemetry: pure functions from DataFrames to DataFrames, with thin readers and writers around them.

Jobs aggregate, compare, forecast, audit and plan from stored load reports. No delivery and no session depends on them:
readers check a snapshot before they use it, and use the collectors' fold without one.
"""
