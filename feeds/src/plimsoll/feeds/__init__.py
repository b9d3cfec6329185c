"""Feeds: a subscription whose publications become a dataset of Parquet files, each publication in it exactly once.

`commit_log` decides what belongs to a dataset, `dataset` writes it, `recorder` feeds it from a subscriber, `replay` reads
it back. Nothing here changes a fleet; a recorder is an ordinary subscriber.
"""
