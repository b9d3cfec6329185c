"""The main job: a fleet on this machine, real quotes through it, and an audit of every delivery.

It starts the fleet of `examples/demo` as `plimsoll up` would, publishes and subscribes from processes of their own
through `plimsoll.client`, and judges what they wrote down with `plimsoll.core.verify`. Nothing here knows how brokers
work, and nothing of it is left running.
"""

from plimsoll.local.demo.command import main

__all__ = ["main"]
