"""A World of a running fleet: its specifications, and its load as far as brokers can tell it.

What is copied, what is measured and what is assumed stays apart: each assumption comes with a sentence that says so.
"""
