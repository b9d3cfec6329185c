"""The machine of a head: it accepts publications, logs them, routes them, and decides every hand-over of its edges.

Modules of this package may use one another from the top of the contract `head-layers` downward; none imports the edge's
package, nor the client's. `machine` puts the parts together and dispatches messages; a part decides one thing.
"""
