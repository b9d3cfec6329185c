"""A fleet on one machine: the custom resources that Kubernetes takes, run as supervised processes.

It stores objects, starts and restarts processes, and leaves none behind. `plimsoll.core.spec` defines the resources;
`plimsoll.broker` is the broker, which this package starts as a program and never imports.
"""
