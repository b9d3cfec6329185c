"""Spark over telemetry: pure functions from DataFrames to DataFrames, with thin readers and writers around them.

Jobs aggregate, compare, forecast, audit and plan from stored load reports. They advise and are never in the way of a
delivery or a session: whoever reads their snapshot checks it first, and has the collectors' fold without them.
"""
