"""The program `python -m plimsoll.operator`, configured by its environment.

Exit codes: 0 after SIGTERM or SIGINT; 1 after an error, the process should be restarted; 2 for an invalid environment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from plimsoll.core.printable import printable_lines
from plimsoll.operator.api import Api
from plimsoll.operator.process import OperatorProcess
from plimsoll.operator.settings import OperatorSettings, OperatorSettingsError, read_settings
from plimsoll.telemetry.log_lines import log_to_stderr


def main() -> int:
    """Run until SIGTERM or SIGINT; the exit code."""
    try:
        settings = read_settings(os.environ)
    except OperatorSettingsError as error:
        sys.stderr.write(printable_lines(f"plimsoll.operator: {error}\n"))
        return 2
    log_to_stderr(settings.log_level)
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[settings.log_level]))
    asyncio.run(_run_operator(settings))
    return 0


async def _run_operator(settings: OperatorSettings) -> None:
    async with await Api.connect() as api:
        await OperatorProcess(api, settings).run()


if __name__ == "__main__":
    sys.exit(main())
