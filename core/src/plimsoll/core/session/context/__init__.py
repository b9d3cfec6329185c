"""The context of a session's steps: the observed fleet, loads, reservations, profile queries, and effects.

The engine owns one context and passes it to each step. Nothing here decides a session's next step.
"""
