"""The mediator's side of telemetry: polling collectors for snapshots, choosing one, and sending session outcomes.

Telemetry is never in the safety loop: without an answer the mediator goes on with its own figures.
"""
