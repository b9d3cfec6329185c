"""A place for numba to read cached machine code from even though it cannot write there.

numba requires a writable directory even to read from it. `kernel.load` names this locator to numba; it applies when the
directory beside the module is read-only and already holds an index. Loaded only with numba.
"""

from numba.core.caching import InTreeCacheLocator


class KeptCacheLocator(InTreeCacheLocator):
    """The directory beside the module, read-only."""

    @classmethod
    def from_function(cls, py_func: object, py_file: str) -> "KeptCacheLocator | None":
        from plimsoll.core.matching.kernel import cached_files  # here: numba imports this module while `kernel` loads

        return cls(py_func, py_file) if any(path.suffix == ".nbi" for path in cached_files()) else None
