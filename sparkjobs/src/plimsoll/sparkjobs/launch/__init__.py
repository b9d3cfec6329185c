"""How jobs are started: pure functions from a fleet's wishes to commands and objects, and from a snapshot to health.

Nothing here needs Spark, starts anything or talks to a cluster; the local runtime and the operator do that, with what
is rendered here. At any time one live driver works on a checkpoint. Whether it works is told by the age of its
snapshot and by nothing else: a pod may run and say nothing, and an object may be Running for ever.
"""
