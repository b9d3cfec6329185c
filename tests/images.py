"""Images that tests run in a cluster, and the variables that name the available ones.

Nothing is assumed to be in a cluster: a test marked `images("broker")` is skipped by name unless its variable is set.
`.ci/run` builds the images and sets the variables.
"""

from __future__ import annotations

import os

TAGS = {
    "broker": "PLIMSOLL_IMAGE_TAG",
    "operator": "PLIMSOLL_IMAGE_TAG",
    "collector": "PLIMSOLL_COLLECTOR_IMAGE_TAG",
    "spark": "PLIMSOLL_SPARK_IMAGE_TAG",
}


def tag(name: str) -> str:
    """The tag of the image in the cluster; empty if it is not there."""
    return os.environ.get(TAGS[name], "")


def image(name: str) -> str:
    """The image, as PLIMSOLL_BROKER_IMAGE (and so on) or its tag names it; empty if neither is set."""
    return os.environ.get(f"PLIMSOLL_{name.upper()}_IMAGE") or (f"plimsoll/{name}:{tag(name)}" if tag(name) else "")


def missing_image(*names: str) -> str:
    """Why a test that needs these is skipped; empty if all are there."""
    for name in names:
        if not image(name):
            return f"needs the {name} image in the cluster: {TAGS[name]} is not set"
    return ""
