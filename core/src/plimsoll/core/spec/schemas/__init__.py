"""Definitions for an API server: OpenAPI schemas, CEL rules and printer columns; and the reference tables.

Everything here is generated from the types, so that the definitions and the code cannot disagree.
"""
