"""The mediator on Kubernetes: who holds the lease, in which epoch, and the session objects that it stores.

The machine is that of `plimsoll.core.session`; this package stores each saved state before it sends any command.
"""
