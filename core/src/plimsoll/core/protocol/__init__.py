"""The wire between processes: frames (`wire`), the messages in them (`messages`), and their offsets (`origins`).

Only encoding and decoding live here, with their limits. The receiving machine decides what a message means;
docs/protocol.md describes both. Bytes never change within a protocol version: tests/vectors holds them.
"""
