"""A peer that tries any client program against docs/protocol.md: a scripted head and scripted edges.

What may live here: scenarios, the scripted side of links and attachments, the expectations that a scenario has of a
client, and the sockets and the child process of a run. Nothing of `plimsoll.client` or of the machines of the core may
be imported: the judge of a client shares no code with a client. Only the values of `plimsoll.core.protocol` are shared.
"""

from plimsoll.conformance.child_client import ChildClient, ChildClientError
from plimsoll.conformance.client_under_test import ClientUnderTest
from plimsoll.conformance.report import json_report, table_report
from plimsoll.conformance.runner import Verdict, play, play_all
from plimsoll.conformance.scenarios import PROFILES, SCENARIOS, Scenario

__all__ = [
    "PROFILES",
    "SCENARIOS",
    "ChildClient",
    "ChildClientError",
    "ClientUnderTest",
    "Scenario",
    "Verdict",
    "json_report",
    "play",
    "play_all",
    "table_report",
]
