"""Make the virtual environment: exactly the locked packages, checked by hash, and this project on top, editable.

With `--spark` also what the Spark jobs need, if Java is installed. Runs on a bare Python, so it uses the
standard library alone and parses under old versions, which it refuses by name. Two runs at a time are safe: the second
waits for the first and finds its work done.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

NEEDED = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".complete"
LOCK = ROOT / "requirements-dev.lock"
SPARK_STAMP = VENV / ".spark"
SPARK_LOCK = ROOT / "requirements-spark.lock"


def fingerprint():
    """A digest of all that the environment is made from; the stamp holds it."""
    digest = hashlib.sha256(sys.version.encode())
    for source in (LOCK, ROOT / "pyproject.toml"):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def is_complete(wanted):
    return STAMP.exists() and PYTHON.exists() and STAMP.read_text() == wanted


def works():
    """Whether an existing environment still runs and is of this Python: an upgrade of Python breaks or outdates it."""
    if not PYTHON.exists():
        return False
    asked = [str(PYTHON), "-c", "import sys, pip; print(sys.version)"]
    answer = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return answer.stdout.decode().strip() == sys.version


def build(wanted):
    if STAMP.exists():
        STAMP.unlink()  # from here on the environment counts as unfinished until the stamp is back
    if not works():
        subprocess.check_call([sys.executable, "-m", "venv", "--clear", str(VENV)])
    install("--require-hashes", "-r", str(LOCK))
    install("--no-deps", "--no-build-isolation", "-e", str(ROOT))
    STAMP.write_text(wanted)


def install(*what):
    subprocess.check_call([str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *what])


def build_spark():
    """PySpark comes as a source archive without build requirements of its own but setuptools."""
    wanted = hashlib.sha256(sys.version.encode() + SPARK_LOCK.read_bytes()).hexdigest()
    if SPARK_STAMP.exists() and SPARK_STAMP.read_text() == wanted:
        return
    if shutil.which("java") is None:
        print("No Java: Spark is not set up, and its tests are skipped by name.", flush=True)
        return
    print("Setting up Spark: half a gigabyte, once ...", flush=True)
    install("--require-hashes", "-r", str(SPARK_LOCK))
    SPARK_STAMP.write_text(wanted)


def main():
    if sys.version_info < NEEDED:
        found = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            "Plimsoll needs Python 3.11 or newer, and "
            + sys.executable
            + " is "
            + found
            + ". Name another: make PYTHON=python3.12"
        )
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = fingerprint()
        if not is_complete(wanted):
            print("Setting up .venv: the locked packages, then this project ...", flush=True)
            build(wanted)
        if "--spark" in sys.argv[1:]:
            build_spark()


if __name__ == "__main__":
    main()
