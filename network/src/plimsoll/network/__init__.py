"""Connections to hosts that are named, for all shells that dial brokers: clients, brokers, mediators and collectors.

A shell owns its sockets and decides when to dial. Here they are connected, and nothing is read or sent: names are
looked up beside the thread of the sockets, so one host without an answer holds up no connection to another.
"""

from plimsoll.network.connector import Connector

__all__ = ["Connector"]
