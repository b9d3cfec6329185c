"""Load with disturbances, for minutes or hours: brokers and clients are killed and frozen while real quotes flow.

The audit is the demo's. Publications may be lost only within a reported gap; none may be duplicated or reordered.
"""
