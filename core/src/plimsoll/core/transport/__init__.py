"""Reliable links between overlay nodes: handshakes, sequence numbers, acknowledgements, credit and retransmission.

An overlay node is the part that a head, an edge and a client share. It opens and loses links, delivers frames in order
and knows nothing of publications or subscriptions. Nothing here touches a socket: shells move the bytes.
"""
