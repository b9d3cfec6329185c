"""The log of a head on a disk: files, syncs, and rounds whose output waits for them."""
