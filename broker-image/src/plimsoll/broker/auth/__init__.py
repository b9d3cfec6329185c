"""Who may connect and what a client may do: authorised keys, permissions, and the check of each peer's messages.

A broker trusts a key, never a name: the name that a peer gives must be one that its key is authorised for.
"""
