"""The supervisor of a local fleet: brokers, mediator and companions as child processes, restarted when they end.

Processes are started from argument lists as programs, never imported, and ended by process id.
"""
