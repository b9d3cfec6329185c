"""The kill matrix of bundles: a process killed before and behind each step of an unload and of a split.

The fleet has its supervisor and its mediator, which bring back what is killed. Every delivery is audited, and ranges
and owners of bundles are compared with the store and with what edges serve.
"""
