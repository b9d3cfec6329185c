"""How jobs are started: pure functions from a fleet's settings to commands and objects, and from a snapshot to health.

Nothing here needs Spark, starts a process or talks to a cluster; the local runtime and the operator do that with what
is rendered here. At any time one live driver works on a checkpoint. Its health is the age of its snapshot alone, since
a pod can be Running without writing anything.
"""
