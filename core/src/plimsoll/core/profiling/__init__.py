"""Traffic samples and profiles: what share of the traffic each subscriber of an edge takes.

The edge makes profiles and the mediator's session engine reads them; neither imports the other.
"""
