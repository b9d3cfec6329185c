"""The fleet on Kubernetes: kopf watches objects, pure functions derive the desired state, a thin shell applies it.

Desired objects, ordered changes and status are values, computed from the API server's objects alone, so a restart loses
nothing. The mediator of a fleet runs here, too. Nothing blocks the event loop, and no decision about load is made here.
"""
