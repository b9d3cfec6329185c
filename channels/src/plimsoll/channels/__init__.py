"""Channels: queries with parameters over feeds and tables, whose results are published to those who subscribe to them.

Nothing here changes a fleet: a driver is an ordinary publisher, which also asks edges for the parameters in force.
`batch`, `batch_clock`, `subscriptions`, `results` and `ledger` are the rules. Spark is behind `query`, the fleet behind
`publisher` and `edge_poller`; `runner` runs one channel, `driver` all of them.
"""
