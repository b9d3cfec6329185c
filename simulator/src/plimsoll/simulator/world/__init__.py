"""What a simulated run consists of: brokers, applications, and a workload drawn from the seed.

Brokers and clients are the product's own machines; only what surrounds them is simulated.
"""
