"""The `plimsoll` command: one tool over the local store or an API server.

It parses arguments, asks, and prints: tables for people, JSON or YAML for programs, and an exit code that tells the
truth. It holds no rule of the fleet: a check worth making is made in the core or at the store, for every caller.
"""
