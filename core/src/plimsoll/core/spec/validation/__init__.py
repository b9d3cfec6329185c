"""Checks that need more than one field: consistency of a set of resources, and which changes an update may make.

Each finding is a located problem whose message names the path and the remedy; no check changes anything.
"""
