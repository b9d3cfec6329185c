"""Copies of objects of a store in a folder of the driver, for Spark: its wheel has no library for stores.

Each view of a query has a folder. An object is fetched once in each of its versions, so a batch fetches what is new
since the batch before. Copies of deleted objects are deleted. The folder is empty when a driver starts.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from plimsoll.feeds.commit_log import STAGING, FeedDatasetError, FeedFile
from plimsoll.feeds.object_path import ListedObject, ObjectPath

TABLE_BYTES: Final = 8 * 2**30
"""The largest table that is copied. Feeds are bounded by their retention."""


class StoreCopies:
    """`folder`: used by this object alone; its content is deleted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._versions: dict[Path, str] = {}
        self.fetched = 0
        """How many objects it has fetched."""
        if folder.exists():
            shutil.rmtree(folder)

    def of_table(self, view: str, place: ObjectPath) -> Path:
        """A file or folder with the table at a place: an object of this name, or all whose names continue it.

        Raises:
            FeedDatasetError: there is no such table, or it is too large.
            ObjectStoreError: the store fails.

        """
        found = place.objects()
        if not found:
            raise FeedDatasetError(f"{place}: there is no table here")
        if (size := sum(each.size_bytes for each in found)) > TABLE_BYTES:
            told = f"{size / 2**30:.1f} GiB, and a driver copies at most {TABLE_BYTES / 2**30:g} of a table"
            raise FeedDatasetError(f"{place} has {told}: keep it on the volume or in the folder of the fleet")
        folder = self._folder / view
        wanted = {folder / _relative(each): each for each in found}
        self._forget(folder, wanted)
        for path, each in wanted.items():
            self._fetch(path, each.version, [each.path])
        return folder / place.name if found[0].name == "" else folder

    def of_feed(self, view: str, root: ObjectPath, files: Sequence[FeedFile]) -> list[Path]:
        """These files of a feed, whose content never changes. Raises as `of_table` does."""
        folder = self._folder / view
        wanted = {folder / each.staged_name: each for each in files}
        self._forget(folder, wanted)
        for path, each in wanted.items():
            # A file that its recorder is about to publish is still where it was staged.
            self._fetch(path, each.path, [root / each.path, root / STAGING / each.staged_name, root / each.path])
        return list(wanted)

    def _forget(self, folder: Path, wanted: Mapping[Path, object]) -> None:
        for path in [path for path in self._versions if folder in path.parents and path not in wanted]:
            path.unlink(missing_ok=True)
            del self._versions[path]

    def _fetch(self, target: Path, version: str, sources: Sequence[ObjectPath]) -> None:
        """Fetch an object from the first of these places that has it, unless its copy is of this version."""
        if self._versions.get(target) == version:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.partial")
        for source in sources:
            try:
                source.download(partial)
            except FileNotFoundError:  # it is at another of these places, or the end says so
                continue
            partial.replace(target)
            self._versions[target] = version
            self.fetched += 1
            return
        raise FeedDatasetError(f"{sources[0]} was deleted while it was read")


def _relative(found: ListedObject) -> str:
    """The name of a copy in its folder, which a name in a store must not leave."""
    name = found.name or found.path.name
    if {"", ".", ".."} & set(name.split("/")) or PurePosixPath(name).is_absolute():
        raise FeedDatasetError(f"{found.path}: no file can have this name: rename the object")
    return name
