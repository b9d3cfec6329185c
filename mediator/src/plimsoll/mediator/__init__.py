"""Shared parts of the shells around the mediator, on one machine and on Kubernetes.

Pure functions convert objects to the core's values and back: the desired brokers, the requests and states of sessions,
the view of the fleet, and its status. `control_plane` talks to brokers. Nothing here decides, stores, or knows where
objects are stored.
"""
