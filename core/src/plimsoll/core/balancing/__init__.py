"""The brokers' part in balancing: what an edge senses and says, and what its head passes on.

All of it goes by control sockets, ahead of publications, and may be lost: whoever wants something says it again. An
edge never acts on what it senses, and nothing that it is told binds it for longer than was said. In a cluster without a
policy nothing of this runs.
"""
