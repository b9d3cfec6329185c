"""Datasets in object stores: a name in a bucket, with the few methods of a path that a dataset needs.

A store has no rename and no lock. What takes their place: an object appears whole, and `create` makes one only if none
of its name exists, a conditional write of the store. Stores without conditional writes are of no use here. Address
and credentials come from the environment, as other programs take them: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
`AWS_ENDPOINT_URL`, `AWS_REGION`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

SCHEMES: Final = ("s3", "s3a")
_URL: Final = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<bucket>[^/]+)/?(?P<prefix>.*)")
ENDPOINT: Final = "AWS_ENDPOINT_URL"
STORE_VARIABLES: Final = "AWS_"
"""How all of them begin."""


class ObjectPath:
    """A name in a store. Raises OSError where the store fails, FileNotFoundError if no object has it.

    `store`: of `obstore`. `url`: of its bucket.
    """

    def __init__(self, store: Any, url: str, name: str) -> None:
        self._store, self._url, self._key = store, url, name.strip("/")

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self._store, self._url, f"{self._key}/{name}")

    def __str__(self) -> str:
        return f"{self._url}/{self._key}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: ObjectPath) -> bool:
        return str(self) < str(other)

    @property
    def name(self) -> str:
        return self._key.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return self.name.rpartition(".")[0] or self.name

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self._store, self._url, self._key.rpartition("/")[0])

    @property
    def age_seconds(self) -> float:
        """How long ago it was written, by this clock and that of the store."""
        with _told(self):
            at: datetime = self._store.head(self._key)["last_modified"]
        return (datetime.now(UTC) - at).total_seconds()

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: stores have no folders."""

    def exists(self) -> bool:
        try:
            with _told(self):
                self._store.head(self._key)
        except FileNotFoundError:
            return False
        return True

    def read_bytes(self) -> bytes:
        with _told(self):
            return bytes(self._store.get(self._key).bytes())

    def read_range(self, offset: int, size: int) -> bytes:
        """A part of it, from `offset` on."""
        with _told(self):
            return bytes(self._store.get_range(self._key, start=offset, length=size))

    def write_bytes(self, content: bytes) -> None:
        """Write it, whether it exists or not."""
        with _told(self):
            self._store.put(self._key, content)

    def create(self, content: bytes) -> None:
        """Write it if it does not exist. Raises FileExistsError."""
        from obstore.exceptions import AlreadyExistsError

        with _told(self):
            try:
                self._store.put(self._key, content, mode="create")
            except AlreadyExistsError as error:
                raise FileExistsError(f"{self} exists") from error

    def read_version(self) -> tuple[bytes, str]:
        """Its content, and the version that `update` takes."""
        with _told(self):
            found = self._store.get(self._key)
            return bytes(found.bytes()), str(found.meta["e_tag"])

    def update(self, content: bytes, version: str) -> str:
        """Write it if it still has this version, empty: if it does not exist; returns its new one.

        Raises FileExistsError: another process has written it.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with _told(self):
            try:
                mode = {"e_tag": version} if version else "create"
                return str(self._store.put(self._key, content, mode=mode)["e_tag"])
            except (AlreadyExistsError, PreconditionError) as error:
                raise FileExistsError(f"{self} was written by another process") from error

    def replace(self, target: ObjectPath) -> None:
        """Move it, in two steps that may be repeated: a copy, then the deletion."""
        with _told(self):
            self._store.copy(self._key, target._key)
            self._store.delete(self._key)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete it. Stores do not say whether it was there."""
        try:
            with _told(self):
                self._store.delete(self._key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def iterdir(self) -> Iterator[ObjectPath]:
        """The objects whose names continue this one by one part."""
        return (each.path for each in self._below() if each.path.parent == self)

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """The objects directly below this name that have a name of this pattern."""
        return (each for each in self.iterdir() if fnmatchcase(each.name, pattern))

    def _below(self) -> list[ListedObject]:
        with _told(self):
            items = [item for page in self._store.list(f"{self._key}/") for item in page]
        return [_listed(self, item) for item in sorted(items, key=lambda item: str(item["path"]))]

    def objects(self) -> list[ListedObject]:
        """The object of this name, or all whose names continue it; sorted."""
        if found := self._below():
            return found
        try:
            with _told(self):
                return [_listed(self, self._store.head(self._key))]
        except FileNotFoundError:
            return []

    def download(self, target: Path) -> None:
        """Write its content to a file, piece by piece."""
        with _told(self), target.open("wb") as file:
            for piece in self._store.get(self._key).stream():
                file.write(piece)


class ListedObject(NamedTuple):
    """An object below a name. `name`: what follows that name, empty for the object of that name itself.

    `version`: changes whenever its content does.
    """

    path: ObjectPath
    name: str
    size_bytes: int
    version: str


DatasetPath = Path | ObjectPath
"""A dataset, or something in it: in a file system or in an object store."""


def children(folder: DatasetPath, pattern: str = "*") -> list[DatasetPath]:
    """What is directly in a folder, or below a name, with a name of this pattern; sorted."""
    found: Iterable[DatasetPath] = folder.glob(pattern)
    return sorted(found, key=str)


class ObjectStoreError(OSError):
    """A store that cannot be used; says why and what to do."""


def _listed(place: ObjectPath, item: Mapping[str, Any]) -> ListedObject:
    """An object in a listing of the store, at a place or below it."""
    key, version = str(item["path"]), str(item.get("e_tag") or item["last_modified"])
    found = ObjectPath(place._store, place._url, key)
    return ListedObject(found, key.removeprefix(place._key).removeprefix("/"), int(item["size"]), version)


@contextmanager
def _told(path: ObjectPath) -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise ObjectStoreError(f"{path}: {str(error).splitlines()[0]}") from error


def store_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that says where the store is, and how to enter it."""
    return {name: value for name, value in environment.items() if name.startswith(STORE_VARIABLES)}


def is_object_url(text: str) -> bool:
    """Whether a path names a place in an object store."""
    return "://" in text


def dataset_root(text: str, environment: Mapping[str, str] = os.environ) -> DatasetPath:
    """The place of a dataset, from its path in a specification or on a command line.

    Raises:
        ObjectStoreError: the address has another form, or the package for stores is missing.

    """
    if not is_object_url(text):
        return Path(text)
    match = _URL.fullmatch(text)
    if match is None or match["scheme"] not in SCHEMES or not match["prefix"].strip("/"):
        raise ObjectStoreError(f"{text} is not a place for a dataset: write s3a://BUCKET/PREFIX")
    try:
        from obstore.store import S3Store
    except ImportError as error:
        remedy = "pip install 'plimsoll-operator[feeds]'"
        raise ObjectStoreError(f"{text} needs the Python package obstore: {remedy}") from error
    plain = environment.get(ENDPOINT, "").startswith("http://")
    options: dict[str, Any] = {"client_options": {"allow_http": True}} if plain else {}
    store = S3Store(match["bucket"], **options)
    return ObjectPath(store, f"{match['scheme']}://{match['bucket']}", str(PurePosixPath(match["prefix"])))
