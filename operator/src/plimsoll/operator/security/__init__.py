"""Keys of brokers and clients: their creation, Secrets, authorisation, and rotation with an overlap.

A private key leaves its Secret only for the pod that it belongs to.
"""
