"""The edge: serves subscribers from its head's stream, without letting one of them delay another.

`machine` puts the parts together. `stream_input`, `head_messages` and `client_requests` deal with what comes in; the
other modules each decide one thing. Nothing here imports the head's or the client's package.
"""
