"""The demo's publishers and subscribers, in processes of their own, driven over pipes.

A worker is an ordinary application of `plimsoll.client` that writes down what it sent and received.
"""
