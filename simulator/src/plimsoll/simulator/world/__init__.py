"""The parts of a simulated run: brokers, applications, and a workload drawn from the seed.

Brokers and clients are the machines of the product; only their surroundings are simulated.
"""
