"""Starts of sessions without a user: triggers of edges, and imbalance detected between clusters.

A trigger only creates a session object, which is then treated like any other request.
"""
