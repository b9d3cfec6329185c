"""The state of the live job between micro-batches: buffers of reports by cluster, checkpoints, and snapshot files.

One stateful operator keeps a bounded state for each cluster, and a restarted job continues from the checkpoint.
"""
