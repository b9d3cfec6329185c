"""Make the virtual environment: exactly the locked packages, checked by hash, and this project on top, editable.

Runs on a bare Python, so it uses the standard library alone and parses under old versions, which it refuses by name.
Two runs at a time are safe: the second waits for the first and finds its work done.
"""

import fcntl
import hashlib
import os
import subprocess
import sys

NEEDED = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, ".complete")
INPUTS = ("requirements-dev.lock", "pyproject.toml")


def fingerprint():
    """A digest of all that the environment is made from; the stamp holds it."""
    digest = hashlib.sha256(sys.version.encode())
    for name in INPUTS:
        with open(os.path.join(ROOT, name), "rb") as source:
            digest.update(source.read())
    return digest.hexdigest()


def is_complete(wanted):
    try:
        with open(STAMP) as stamp:
            return stamp.read() == wanted
    except FileNotFoundError:
        return False


def build(wanted):
    python = os.path.join(VENV, "bin", "python")
    if os.path.exists(STAMP):
        os.remove(STAMP)
    if not os.path.exists(python) or not runs(python):
        subprocess.check_call([sys.executable, "-m", "venv", "--clear", VENV])
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.check_call([*pip, "install", "--require-hashes", "-r", os.path.join(ROOT, INPUTS[0])])
    subprocess.check_call([*pip, "install", "--no-deps", "--no-build-isolation", "-e", ROOT])
    with open(STAMP, "w") as stamp:
        stamp.write(wanted)


def runs(python):
    """Whether an existing environment still works and is of this Python (an upgrade of Python breaks or ages it)."""
    asked = [python, "-c", "import sys, pip; print(sys.version_info[:2] == %r)" % (sys.version_info[:2],)]  # noqa: UP031
    return subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip() == b"True"


def main():
    if sys.version_info < NEEDED:
        sys.exit(
            "Plimsoll needs Python %d.%d or newer; %s is %d.%d. Name another: make PYTHON=python3.12 ..."  # noqa: UP031
            % (*NEEDED, sys.executable, *sys.version_info[:2])
        )
    os.makedirs(VENV, exist_ok=True)
    with open(os.path.join(ROOT, ".venv.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = fingerprint()
        if not is_complete(wanted):
            print("Setting up .venv (locked packages, then this project) ...", flush=True)
            build(wanted)


if __name__ == "__main__":
    main()
