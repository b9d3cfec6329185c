"""The folder of a local fleet: stored objects with their versions and changes, the mediator's epoch, and caches.

Stored state outlives every process of the fleet; each write is atomic.
"""
