"""Contexts: names for fleets, and the decision which fleet a command goes to.

A context names an address, a local fleet, or a namespace of a Kubernetes cluster. Local fleets and the contexts of the
kubeconfig need not be stored: they are found by their own names. Nothing here connects to anything.
"""
