"""From a request to an approved plan: negotiation, sampling, and the planners of moves and shuffles.

Up to here a session can be given up without a trace: no subscriber has moved, and no broker has anything to undo.
"""
