"""Worlds of one's own: a fleet and its traffic in files, run in the queueing model under several policies.

The specification is read like a custom resource, with every fault located. Only the caller reads and writes files.
"""
