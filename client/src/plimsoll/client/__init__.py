"""What applications import: `Publisher` and `Subscriber`, synchronous or with asyncio.

A thin shell around the client machine of `plimsoll.core`. It owns the link to a broker, reconnects it and follows
redirects without the application noticing. It hides nothing: a gap, a refusal or an unknown outcome reaches the caller.
"""
