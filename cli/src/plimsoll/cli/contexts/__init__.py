"""Contexts: names for fleets, and the decision which fleet a command goes to.

A context names an address, a local fleet, or a namespace of a Kubernetes cluster. Local fleets and the contexts of the
kubeconfig need not be stored: they are found by their own names. Nothing here connects to anything.
"""

CONTEXT_VARIABLE, FLEET_VARIABLE = "PLIMSOLL_CONTEXT", "PLIMSOLL_FLEET"
KUBERNETES_VARIABLE = "PLIMSOLL_KUBERNETES"
"""If set to anything but 0 or the empty text, commands use the API server by default."""
