"""Who may connect and what a client may do: authorised keys, permissions, and the answers to ZAP.

A process that listens trusts a key, never a name. No socket is opened here.
"""
