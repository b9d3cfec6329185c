"""Virtual time, network and hardware around the machines of `plimsoll.core`.

One heap of events under one seed: the same seed gives the same run, to the byte. The simulator adds delay, loss of
connections, pauses and crashes; it never adds behaviour, so what passes or fails here passes or fails in processes.
"""
