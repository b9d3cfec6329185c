"""From the observed to the desired state: a fleet's objects, and the ordered changes to them.

Decisions here are pure functions over resources; only `fleet` carries their steps out through the API server.
"""
