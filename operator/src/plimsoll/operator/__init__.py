"""The fleet on Kubernetes: kopf hears of objects, pure functions say what should be, a thin shell makes it so.

Desired objects, ordered changes and status are values, computed from what the API server holds and nothing else, so a
restart loses nothing. The mediator of a fleet runs here, too. Nothing blocks the event loop, and no decision about
load lives in this room.
"""
