"""The program `python -m plimsoll.operator.survey NAMESPACE SECONDS [CLUSTER]`: a survey of a fleet's load, as JSON.

`plimsoll world` starts it in the operator's pod, from which brokers can be reached and whose service account may read
the mediator's key. It commands nothing, and stores nothing. Exit codes: 0; 1, with one line on standard error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from plimsoll.core.printable import printable, printable_lines
from plimsoll.mediator.control_plane import MediatorKeyPair
from plimsoll.mediator.fleet_resources import BROKER_KINDS, Object
from plimsoll.mediator.world.survey_run import is_plain, run_survey
from plimsoll.mediator.world.traffic_survey import SurveyError, encode_survey
from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiError
from plimsoll.operator.security import keys


def main(arguments: Sequence[str]) -> int:
    """Print the survey; the exit code."""
    namespace, seconds, *cluster = arguments
    try:
        objects, curve = asyncio.run(_read(namespace))
        found = run_survey(names.MEDIATOR, curve, objects, "".join(cluster), float(seconds))
    except (SurveyError, ApiError) as error:
        sys.stderr.write(printable_lines(f"{printable(error)}\n"))
        return 1
    sys.stdout.buffer.write(encode_survey(found))
    return 0


async def _read(namespace: str) -> tuple[list[Object], MediatorKeyPair | None]:
    async with await Api.connect() as api:
        return await fleet_and_key(api, namespace)


async def fleet_and_key(api: Api, namespace: str) -> tuple[list[Object], MediatorKeyPair | None]:
    """The objects of the fleet of a namespace, and its mediator's key; None for a fleet without keys."""
    objects = [item for kind in BROKER_KINDS for item in await api.list(kind, namespace)]
    if is_plain(objects):
        return objects, None
    held = keys.read_keys(await api.get("Secret", namespace, names.MEDIATOR_KEYS))
    if held is None:
        raise SurveyError(f"the Secret {names.MEDIATOR_KEYS} holds no key pair; the operator mends it within a minute")
    return objects, MediatorKeyPair(held.public, held.secret)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
