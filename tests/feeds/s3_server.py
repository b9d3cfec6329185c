"""A real S3 server for tests: PLIMSOLL_OBJECT_STORE names the program; scripts/build_object_store.sh builds it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

VARIABLE = "PLIMSOLL_OBJECT_STORE"
BUCKET = "datasets"
KEYS = {"ROOT_ACCESS_KEY": "recorder", "ROOT_SECRET_KEY": "only-for-this-test"}
START_SECONDS = 300.0


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@contextmanager
def running_store(folder: Path, host: str = "127.0.0.1") -> Iterator[Mapping[str, str]]:
    """A server with one bucket: the environment by which programs find and enter it, as a Secret gives it to a pod.

    `host`: an address of this machine.
    """
    program = os.environ.get(VARIABLE, "")
    if not program or shutil.which(program) is None:
        pytest.skip(f"needs an S3 server: {VARIABLE} is not set; scripts/build_object_store.sh builds one")
    buckets, side = folder / "buckets", folder / "sidecar"
    (buckets / BUCKET).mkdir(parents=True)
    side.mkdir()
    with socket.create_server((host, 0)) as probe:
        port = probe.getsockname()[1]
    command = [program, "--port", f"{host}:{port}", "posix", "--sidecar", str(side), str(buckets)]
    log = folder / "server.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, env={**os.environ, **KEYS}, stdout=out, stderr=out)
    try:
        until = time.monotonic() + START_SECONDS
        while not _listens(host, port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, "the server does not listen"
            time.sleep(0.1)
        yield {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEYS["ROOT_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": KEYS["ROOT_SECRET_KEY"],
        }  # fmt: skip
    finally:
        process.terminate()
        process.wait(300)
