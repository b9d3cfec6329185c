"""Disturbances of a fleet under load: a seeded plan of kills, pauses and cuts, and the injector that carries it out.

Only processes that the soak started itself are disturbed, by process id.
"""
