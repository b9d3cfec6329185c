"""Serving a dataset to applications, beside its recorder: what is committed, to whom, and how much at a time.

Decisions are pure: `catalog`, `answers`, `turns`, `open_connections`. `feed_sockets` owns the sockets, `feed_server`
the thread, and `connection_watch` ends connections.
"""
