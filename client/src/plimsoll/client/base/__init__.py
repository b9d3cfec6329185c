"""What connections, publishers, subscribers and members of groups have in common with threads and with asyncio.

Everything is decided here and in the machine. `plimsoll.client` and `plimsoll.client.aio` add how an application calls
it: with `run`, which blocks, or with `await`. State is used under the lock of the connection, which is none with
asyncio.
"""
