"""The main job: a fleet on this machine, real quotes through it, and an audit of every delivery.

It starts the fleet of `examples/demo` as `plimsoll up` would, publishes and subscribes from separate processes through
`plimsoll.client`, and audits their journals with `plimsoll.core.verify`. It knows nothing of the inside of a broker and
leaves no process running.
"""

from plimsoll.demo.command import main

__all__ = ["main"]
