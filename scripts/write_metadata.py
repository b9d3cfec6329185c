"""Record in an image the distribution and version of its sources: `write_metadata.py PYPROJECT SITE_PACKAGES`.

An image copies sources instead of installing a wheel, so that it needs no build tool; a wheel would add this metadata.
"""

import sys
import tomllib
from pathlib import Path


def main(pyproject, site_packages):
    project = tomllib.loads(Path(pyproject).read_text())["project"]
    name, version = project["name"], project["version"]
    folder = Path(site_packages, f"{name.replace('-', '_')}-{version}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
