"""The `plimsoll` command: one tool over the local store or an API server.

It parses arguments, calls a backend and prints: tables for people, JSON or YAML for programs, and an exit code
for the result. It holds no rule of the fleet: checks belong in the core or at the store, where they bind every caller.
"""
