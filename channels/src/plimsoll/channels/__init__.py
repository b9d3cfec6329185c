"""Channels: queries with parameters over feeds and tables, whose results are published to those who subscribe to them.

`batch`, `subscriptions`, `results` and `ledger` are the rules; Spark is behind `query` and `stream`, the fleet behind
`publisher` and `edge_poller`.
"""
