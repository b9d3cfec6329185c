"""The emergency scenario of BAD 2019 on a real fleet with channels: people who move, reports, shelters, seven channels.

The plan and the oracle are values and plain Python, and know neither Spark nor the fleet: what the oracle calls due
follows from what was published and where people were. `run` plays the plan, `page` shows what became of it.
"""
