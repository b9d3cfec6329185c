"""An edge's part in balancing: it detects overload, answers reservations and makes profiles.

All messages travel on control sockets, ahead of publications, and may be lost; the side that wants something repeats
it. An edge never acts on what it detects, and a reservation holds for the time that it names. In a cluster without a
policy none of this runs.
"""
