"""Real daily stock quotes, read from the package `bokeh_sampledata`: AAPL, GOOG, IBM, MSFT and FB, 2000 to 2013.

A stream of quotes is a pair of company and year; its symbol is `AAPL-2004`. Nothing is downloaded, and pandas is not
needed: the file inside the package is a compressed table of text.
"""

from __future__ import annotations

import csv
import gzip
import importlib.resources
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

PACKAGE, FILE = "bokeh_sampledata", "_data/stocks.csv.gz"
COLUMNS = ("Ticker", "Date", "Open", "High", "Low", "Close", "Volume")

Quotes = Mapping[str, tuple["Quote", ...]]
"""The quotes of each symbol, by date."""


class QuotesError(RuntimeError):
    """The quotes are not available; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Quote:
    """One day of one company. Prices in dollars, volume in shares, date as in ISO 8601."""

    symbol: str
    date: str
    open: float
    high: float
    low: float
    close: float
    volume: int

    def attributes(self) -> dict[str, str | int | float | bool]:
        """The attributes of its publication. PADRES 2006, 6.1."""
        return {
            "class": "STOCK",
            "symbol": self.symbol,
            "open": self.open,
            "high": self.high,
            "low": self.low,
            "close": self.close,
            "volume": self.volume,
            "date": self.date,
        }


def load() -> Quotes:
    """Every stream of quotes, by symbol; symbols ascending.

    Raises:
        QuotesError: the package is not installed, or its table is not the expected one.

    """
    try:
        packed = (importlib.resources.files(PACKAGE) / FILE).read_bytes()
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise QuotesError(
            f"the quotes are not there ({error}); run make demo in a checkout, which installs them"
        ) from error
    with gzip.open(io.BytesIO(packed), "rt", encoding="utf-8", newline="") as file:
        return quotes_by_symbol(parse_quotes(file))


def parse_quotes(lines: Iterable[str]) -> Iterator[Quote]:
    """The quotes of a table with a header line.

    Raises:
        QuotesError: naming the line.

    """
    rows = csv.DictReader(lines)
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise QuotesError(f"the table of quotes has no column {', '.join(missing)}; bokeh_sampledata 2024.2 has them")
    for row in rows:
        try:
            yield Quote(
                symbol=f"{row['Ticker']}-{row['Date'][:4]}",
                date=row["Date"],
                open=float(row["Open"]),
                high=float(row["High"]),
                low=float(row["Low"]),
                close=float(row["Close"]),
                volume=int(row["Volume"]),
            )
        except (TypeError, ValueError) as error:
            raise QuotesError(f"line {rows.line_num} of the table of quotes is not a quote: {error}") from error


def quotes_by_symbol(quotes: Iterable[Quote]) -> Quotes:
    """By symbol, then by date."""
    streams: dict[str, list[Quote]] = {}
    for quote in quotes:
        streams.setdefault(quote.symbol, []).append(quote)
    return {symbol: tuple(sorted(streams[symbol], key=lambda quote: quote.date)) for symbol in sorted(streams)}
