"""A fleet on one machine: the custom resources that Kubernetes takes, run as supervised processes.

It stores objects, starts and restarts processes, and leaves none behind. What a resource means is `plimsoll.core.spec`;
what a broker does is `plimsoll.broker`, which this package starts as a program and never imports.
"""
