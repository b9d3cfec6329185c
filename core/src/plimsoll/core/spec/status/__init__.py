"""The status of custom resources: status objects, conditions, and the reasons that conditions and events give.

Each reason is listed once, with its cause and what to do; docs/reasons.md is generated from that list.
"""
