"""Sessions and plans as text for people: plans and their reasons, forecasts and measurements.

Functions here take objects and return lines; none of them calls a server.
"""
