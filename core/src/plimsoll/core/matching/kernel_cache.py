"""Where numba may look for kept machine code although it cannot write there.

numba asks for a writable directory even to read from it. This locator, named to numba by `kernel.load`, stands in when
the directory beside the module is sealed and holds an index already. Loaded with numba only.
"""

from numba.core.caching import InTreeCacheLocator


class KeptCacheLocator(InTreeCacheLocator):
    """The directory beside the module, for reading."""

    @classmethod
    def from_function(cls, py_func: object, py_file: str) -> "KeptCacheLocator | None":
        from plimsoll.core.matching.kernel import kept  # here: numba imports this module while `kernel` loads

        return cls(py_func, py_file) if any(path.suffix == ".nbi" for path in kept()) else None
