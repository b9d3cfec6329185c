"""The loop that checks candidates, compiled where numba is installed.

`scan` is plain Python over arrays; `load` compiles it. The machine code is kept beside the module (or where numba's
settings say) and is used on a read-only file system too: an image compiles once, while it is built. Without numba the
index uses its Python path. A processor other than the one that the image was built on compiles again in memory.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SIGNATURE = (
    "int64(float64[::1], int32[::1], int64[::1], int32[::1], float64[::1], float64[::1], int64[::1], int32[::1], "
    "float64[::1], float64[::1], int64[::1], int64[::1])"
)
Scan = Callable[..., int]


# The arrays are numpy's, which need not be installed; SIGNATURE has their types.
def scan(
    vector: Any,
    access: Any,
    offsets: Any,
    head_columns: Any,
    head_lows: Any,
    head_highs: Any,
    starts: Any,
    columns: Any,
    lows: Any,
    highs: Any,
    labels: Any,
    out: Any,
) -> int:
    """Write the labels of the rows that a publication satisfies to `out`; return their number.

    `vector` is the publication as floats, NaN for absent values. Each column of `access` holds the code of a bucket;
    bucket b is the rows offsets[b] to offsets[b + 1]. Row r is satisfied if its two head tests, at 2r and 2r + 1, and
    its other tests, from starts[r] to starts[r + 1], are. A test requires vector[column] to lie in [low, high] or, for
    a complemented column (never in a head), to be a number other than low.
    """
    # The heads decide most rows. They are tested without a branch, as mispredicted branches would cost more.
    passed = 0
    for i in range(len(access)):
        code = vector[access[i]]
        if not code >= 0.0:
            continue
        bucket = int(code)
        for row in range(offsets[bucket], offsets[bucket + 1]):
            one, two = vector[head_columns[2 * row]], vector[head_columns[2 * row + 1]]
            out[passed] = row
            passed += (
                (head_lows[2 * row] <= one)
                & (one <= head_highs[2 * row])
                & (head_lows[2 * row + 1] <= two)
                & (two <= head_highs[2 * row + 1])
            )
    count = 0
    for i in range(passed):
        row = out[i]
        satisfied = True
        for test in range(starts[row], starts[row + 1]):
            column = columns[test]
            if column >= 0:
                value = vector[column]
                satisfied = lows[test] <= value and value <= highs[test]
            else:
                value = vector[~column]
                satisfied = value < lows[test] or value > lows[test]
            if not satisfied:
                break
        if satisfied:
            out[count] = labels[row]
            count += 1
    return count


@cache
def load() -> Scan | None:
    """The compiled loop, or None if numba and numpy are not installed. The first call takes seconds."""
    try:
        numba = import_module("numba")
    except ImportError:
        return None
    ours = f"{__name__}_cache.KeptCacheLocator"
    before = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = f"UserProvidedCacheLocator,InTreeCacheLocator,{ours},UserWideCacheLocator"
    try:
        compiled: Scan = numba.njit(SIGNATURE, cache=True)(scan)
    except (OSError, RuntimeError):  # no place to keep it: neither beside the module nor in a cache directory
        compiled = numba.njit(SIGNATURE)(scan)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before
    return compiled


@cache
def is_installed() -> bool:
    """Whether numba and numpy are installed, without importing them."""
    return find_spec("numba") is not None and find_spec("numpy") is not None


def cached_files() -> list[Path]:
    """The files of cached machine code beside the module."""
    return sorted(Path(__file__).parent.glob("__pycache__/kernel.scan-*.nb[ic]"))
