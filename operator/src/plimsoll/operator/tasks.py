"""The end of asyncio tasks that no caller awaits: a fault at their end goes to the log."""

from __future__ import annotations

import asyncio
import logging
import sys

log = logging.getLogger(__name__)


async def cancel_tasks(*tasks: asyncio.Task[object]) -> None:
    """Cancel tasks and wait for their ends; log each error that is not the one being handled."""
    handled = sys.exception()
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)  # also those after one that has failed
    for task, end in zip(tasks, ends, strict=True):
        if isinstance(end, Exception) and end is not handled:
            log.error("%s was to end and has failed", task.get_name(), exc_info=end)
