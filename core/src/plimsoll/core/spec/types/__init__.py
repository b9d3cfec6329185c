"""The kinds of custom resources as values: fleets, clusters, sessions and the policies that they name.

A type carries its defaults and bounds; parsing, validation and the generated definitions are derived from it.
"""
