"""Carrying out a plan: batches handed over one after the other, their outcomes, and the audit of deliveries.

Before the cut of a batch everything can be rolled back; after it everything rolls forward.
"""
