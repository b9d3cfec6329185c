"""Make what a release consists of, in dist/: the wheel, the packaged chart, the list of images, and checksums of all.

    make release                       or python scripts/make_release.py [FOLDER]

The same sources give the same bytes: every time in the files is SOURCE_DATE_EPOCH, or else that of the last commit.
Images are not files of the release: `images.txt` lists their tags, and how to build, load and push them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "helm" / "plimsoll"
IMAGES = {
    "broker": "heads and edges",
    "operator": "the operator",
    "collector": "collectors of telemetry",
    "spark": "Spark jobs over telemetry",
}
EARLIEST_EPOCH = 315_532_800
"""1980, the earliest time that the archive of a wheel can hold."""
LEFT_OUT = (".swp", ".pyc")

IMAGES_TEXT = """# Container images of release {version}, one tag a line; below is how to build, load and push them.
{tags}

# Build all of them from a checkout of this release, with docker, podman or buildah:
#   make images IMAGE_TAG={version}
# Load them into a kind cluster:
#   kind load docker-image {names}
# Or push them to a registry:
#   for image in {names}; do
#     docker tag "$image" "$REGISTRY/$image" && docker push "$REGISTRY/$image"
#   done
# The chart uses the tag {version} unless image.tag and the like are set. Images of a registry are named by:
#   helm install plimsoll {chart} --namespace plimsoll --create-namespace \\
#     --set image.repository=$REGISTRY/plimsoll/operator,brokerImage.repository=$REGISTRY/plimsoll/broker \\
#     --set collectorImage.repository=$REGISTRY/plimsoll/collector,sparkImage.repository=$REGISTRY/plimsoll/spark
"""


def source_epoch() -> int:
    """Seconds since 1970 that the files of the release have as their time."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        asked = ["git", "log", "-1", "--format=%ct"]
        found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
        given = found or str(EARLIEST_EPOCH)  # an unpacked archive of the sources has no history
    return max(EARLIEST_EPOCH, int(given))


def make_wheel(folder: Path, epoch: int) -> Path:
    """The wheel, of the client, the command and all roles."""
    before = set(folder.glob("*.whl"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    (made,) = set(folder.glob("*.whl")) - before
    return made


def chart_files() -> dict[str, bytes]:
    """The packaged chart's files by name: as `helm package` writes them where Helm is installed, else as they are."""
    helm = shutil.which("helm")
    if helm is not None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([helm, "package", str(CHART), "-d", folder], check=True, stdout=subprocess.DEVNULL)
            (made,) = Path(folder).glob("*.tgz")
            return archived_files(made)
    found = (path for path in CHART.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    kept = [path for path in found if path.suffix not in LEFT_OUT]
    return {f"{CHART.name}/{path.relative_to(CHART).as_posix()}": path.read_bytes() for path in kept}


def archived_files(archive: Path) -> dict[str, bytes]:
    """The contents of the files in an archive, by name."""
    with tarfile.open(archive) as opened:
        members = [member for member in opened if member.isfile()]
        return {member.name: opened.extractfile(member).read() for member in members}  # type: ignore[union-attr]  # it is a file


def write_archive(path: Path, files: Mapping[str, bytes], epoch: int) -> None:
    """An archive whose bytes follow from its contents alone; Helm wants Chart.yaml first."""
    order = sorted(files, key=lambda name: (not name.endswith("/Chart.yaml"), name))
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=epoch, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in order:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(files[name]), epoch, 0o644
            archive.addfile(member, io.BytesIO(files[name]))


def make_chart(folder: Path, epoch: int) -> Path:
    """The packaged chart."""
    described = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    path = folder / f"{described['name']}-{described['version']}.tgz"
    write_archive(path, chart_files(), epoch)
    return path


def images_text(version: str, chart: str) -> str:
    """The list of images."""
    tags = [f"plimsoll/{name}:{version}" for name in IMAGES]
    lines = "\n".join(f"{tag}  # {what}" for tag, what in zip(tags, IMAGES.values(), strict=True))
    return IMAGES_TEXT.format(version=version, tags=lines, names=" ".join(tags), chart=chart)


def checksums_text(paths: list[Path]) -> str:
    """Lines as `sha256sum --check` reads them."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(paths))


def make_release(folder: Path) -> list[Path]:
    """All files of the release, in a folder that is emptied first of what an earlier one left."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("plimsoll_operator-*.whl", "plimsoll-*.tgz"):
        for path in folder.glob(pattern):
            path.unlink()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    epoch = source_epoch()
    made = [make_wheel(folder, epoch), make_chart(folder, epoch)]
    images, checksums = folder / "images.txt", folder / "SHA256SUMS"
    images.write_text(images_text(version, made[1].name), encoding="utf-8")
    made.append(images)
    checksums.write_text(checksums_text(made), encoding="utf-8")
    return [*made, checksums]


if __name__ == "__main__":
    for each in make_release(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"):
        print(each)
