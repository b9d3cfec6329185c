"""Monitoring of a broker: health, metrics, usage of the process, and the HTTP server for them.

Monitoring reads state and never changes it; a scrape costs the event loop bounded time.
"""
