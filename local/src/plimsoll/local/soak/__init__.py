"""Load with disturbances, for minutes or hours: brokers and clients are killed and frozen while real quotes flow.

The audit is the demo's. What may be lost is what a gap has told of; nothing may come twice or in another order.
"""
