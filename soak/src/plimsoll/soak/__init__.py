"""Soaks: real processes under load for minutes or hours, with faults or hand-overs, and an audit of every delivery.

A publication may be lost only within a reported gap; none may be duplicated or reordered.
"""
