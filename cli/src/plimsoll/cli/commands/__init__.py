"""The commands of the tool, a module for each group: inspecting, sessions, the life of a local fleet, pub and sub.

A command reads its arguments, calls the backend, and prints. Objects are formatted in `describe` and `tables`.
"""
