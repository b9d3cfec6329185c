"""The program: `python -m plimsoll.operator`, told by its environment what to do.

Exit codes: 0 it was asked to end; 1 it cannot go on, and should be started again; 2 the environment cannot be used.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from plimsoll.operator.api import Api
from plimsoll.operator.mediating import DeposedError
from plimsoll.operator.service import Service
from plimsoll.operator.settings import Settings, SettingsError, read

log = logging.getLogger("plimsoll.operator")


def main() -> int:
    """Run until SIGTERM or SIGINT; the exit code."""
    try:
        settings = read(os.environ)
    except SettingsError as error:
        sys.stderr.write(f"plimsoll.operator: {error}\n")
        return 2
    logging.basicConfig(stream=sys.stderr, level=settings.log_level, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[settings.log_level]))
    try:
        asyncio.run(_serve(settings))
    except DeposedError as error:
        log.error("%s", error)
        return 1
    return 0


async def _serve(settings: Settings) -> None:
    async with await Api.connect() as api:
        await Service(api, settings).run()


if __name__ == "__main__":
    sys.exit(main())
