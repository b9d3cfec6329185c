"""A feed with channels over it, for tests of what is read and refused."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.core.spec import Resources, SourceDocument, parse

CHANNEL: Final[dict[str, Any]] = {
    "parameters": [{"name": "kind", "type": "String"}],
    "feeds": [{"name": "r", "feed": "reports"}],
    "query": "SELECT kind FROM parameters JOIN r USING (kind)",
}


def channels(*specs: dict[str, Any]) -> Resources:
    """Raises InvalidResourcesError. The channels are called c0, c1 and so on, and the feed `reports`."""
    documents = [("Feed", "reports", {"subscription": "[class,=,'REPORT']"})]
    documents += [("Channel", f"c{index}", {**CHANNEL, **spec}) for index, spec in enumerate(specs)]
    return parse(
        SourceDocument({"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
        for kind, name, spec in documents
    )
