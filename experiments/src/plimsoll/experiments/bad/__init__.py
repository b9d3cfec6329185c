"""BAD, DEBS 2019: the prototype with its emergency scenario, and the simulation of 10,000 subscribers."""
