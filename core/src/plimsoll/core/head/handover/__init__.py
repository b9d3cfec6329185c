"""Moving live subscribers between edges, without losing, repeating or reordering a message.

Laws of the place (docs/handover.md proves them):
- The head of the source alone decides, member by member; the first of cut and abort holds.
- Everything that defines a point in a stream travels in that stream. Only commands, outcomes and REVOKE do not.
- Edges never go back on their own: a target waits for INSTALLED or ABORT.
"""
