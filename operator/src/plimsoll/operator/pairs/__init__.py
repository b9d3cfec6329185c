"""Heads with a standby: two pods of one StatefulSet, of which the stored leadership says which one leads.

The operator asks both, stores who leads by compare-and-set, tells them, and has the Service lead to the one that does.
"""
