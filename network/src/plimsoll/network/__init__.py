"""What shells with sockets share: connections to hosts that are named, and in `auth` who may connect to them.

A shell owns its sockets and decides when to dial. Here they are connected, and nothing is read or sent: names are
looked up beside the thread of the sockets, so one host without an answer holds up no connection to another.
"""

from plimsoll.network.connector import Connector

__all__ = ["Connector"]
