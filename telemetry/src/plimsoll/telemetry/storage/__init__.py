"""Telemetry on disk: Parquet files, written whole and renamed into place, with the schema's version in each.

A reader never sees half a file, and refuses unknown versions.
"""
