"""Kubernetes' ways of writing numbers: quantities (`250m`, `64Mi`, `600k`) and durations (`500us`, `1m30s`).

Values are exact fractions, so no rounding depends on the order of operations; a value remembers how it was written.
Both are compared by value: `1Gi` equals `1024Mi`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

_NUMBER = re.compile(r"(?P<digits>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?P<suffix>[A-Za-z]*|[eE][+-]?[0-9]+)")
# kubernetes/apimachinery resource/suffix.go: binary, decimal; an exponent is a suffix too.
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}

# Each unit once, the largest first, and in total less than the 292 years that fit into a count of nanoseconds, so that
# other readers of the text get the same length.
DURATION = "".join(
    rf"([0-9]{{1,{digits}}}(\.[0-9]+)?{unit})?"
    for unit, digits in (("h", 6), ("m", 7), ("s", 9), ("ms", 11), ("(us|µs)", 14), ("ns", 17))
)
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


@dataclass(frozen=True, order=True)
class Quantity:
    """An amount of cores, bytes, or things per second."""

    value: Fraction
    text: str = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity; ValueError says what is wrong with it."""
        match = _NUMBER.fullmatch(text.strip())
        if match is None:
            raise ValueError("is not a quantity: write a number with an optional suffix, such as 250m, 600k or 64Mi")
        suffix = match["suffix"]
        if re.fullmatch(r"[eE][+-]?[0-9]+", suffix):
            exponent = int(suffix[1:])
            if abs(exponent) > 18:
                raise ValueError("has an exponent beyond 18")
            scale = Fraction(10) ** exponent
        elif suffix in _SUFFIXES:
            scale = _SUFFIXES[suffix]
        else:
            raise ValueError(f"has the unknown suffix {suffix!r}: use one of n u m k M G T P E or Ki Mi Gi Ti Pi Ei")
        return cls(Fraction(match["digits"]) * scale, text.strip())

    @property
    def whole(self) -> int:
        """The amount in whole units, rounded up as Kubernetes does."""
        return -((-self.value.numerator) // self.value.denominator)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded up."""
        return -((-self.value.numerator * 1000) // self.value.denominator)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, order=True)
class Duration:
    """A length of time, never negative."""

    value: Fraction
    text: str = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Read a duration; ValueError says what is wrong with it."""
        stripped = text.strip()
        parts = _DURATION_PART.findall(stripped)
        if not parts or re.fullmatch(DURATION, stripped) is None:
            raise ValueError("is not a duration: write numbers with units, such as 500us, 250ms, 30s or 1m30s")
        return cls(sum((Fraction(number) * _SECONDS[unit] for number, unit in parts), Fraction(0)), stripped)

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return float(self.value)

    def __str__(self) -> str:
        return self.text


def bytes_text(amount: int | Fraction) -> str:
    """Write bytes so that `Quantity.parse` reads at most a few per cent less: the largest binary suffix below it."""
    whole = int(amount)
    for power, letter in reversed(list(enumerate("KMGTPE", start=1))):
        unit = 1024**power
        if whole >= 10 * unit:
            return f"{whole // unit}{letter}i"
    return str(whole)


def seconds_text(seconds: int | Fraction) -> str:
    """Write seconds as a duration, rounded down to milliseconds below 10 s and to seconds above."""
    if seconds >= 10:
        return f"{int(seconds)}s"
    return f"{int(seconds * 1000)}ms"
