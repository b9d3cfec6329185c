"""Refusals of an API server as errors of the command line: the request, the fault and the remedy."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from plimsoll.cli.exit_codes import CONFLICT, FAILED, CommandError
from plimsoll.core.spec import InvalidResourcesError, ResourceProblem
from plimsoll.local.storage.object_store import ObjectConflictError, ObjectMissingError

HTTP_FORBIDDEN, HTTP_NOT_FOUND, HTTP_CONFLICT, HTTP_GONE, HTTP_UNPROCESSABLE = 403, 404, 409, 410, 422


@contextlib.contextmanager
def api_errors(what: str) -> Iterator[None]:
    """Turn refusals of the API server into errors that name the request, the fault and the remedy."""
    try:
        yield
    except ApiException as error:
        if error.status == HTTP_NOT_FOUND and '"' in what:
            raise ObjectMissingError(f"there is no {what}") from error
        if error.status == HTTP_CONFLICT:
            raise ObjectConflictError(f"cannot {what}: {api_message(error)}") from error
        if error.status == HTTP_UNPROCESSABLE:
            raise InvalidResourcesError(
                [ResourceProblem("<server>", None, what, (), api_message(error), "")]
            ) from error
        code = CONFLICT if error.status == HTTP_FORBIDDEN else FAILED
        raise CommandError(code, f"cannot {what}: {api_message(error)}") from error
    except HTTPError as error:
        raise CommandError(FAILED, f"the API server does not answer ({what}): {error}") from error


def api_message(error: ApiException) -> str:
    """The server's message without its headers."""
    with contextlib.suppress(
        ValueError, TypeError, KeyError, RecursionError
    ):  # the answer of a proxy is no Status object
        return str(json.loads(error.body or "")["message"])
    return str(error.reason)
