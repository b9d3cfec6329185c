"""What the live job keeps between triggers: buffers of reports by cluster, checkpoints, and snapshot files.

One stateful operator per cluster; its state is bounded, and a restart goes on from the checkpoint.
"""
