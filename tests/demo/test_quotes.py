"""The quotes are the package's real ones, by company and year; an invalid table is refused with its line."""

import pytest

from plimsoll.demo import quotes

TABLE = "Ticker,Date,Open,High,Low,Close,Volume,Adj Close\n"


def test_the_package_has_five_companies_by_year():
    found = quotes.load()
    assert len(found) == 54
    assert list(found) == sorted(found)
    assert {symbol.partition("-")[0] for symbol in found} == {"AAPL", "FB", "GOOG", "IBM", "MSFT"}
    first = found["AAPL-2000"][0]
    assert first == quotes.Quote("AAPL-2000", "2000-03-01", 118.56, 132.06, 118.5, 130.31, 9616100)


def test_quotes_of_a_stream_are_of_one_year_and_in_order():
    for symbol, stream in quotes.load().items():
        assert [quote.date for quote in stream] == sorted({quote.date for quote in stream})
        assert {quote.date[:4] for quote in stream} == {symbol[-4:]}
        assert {quote.symbol for quote in stream} == {symbol}


def test_a_publication_has_the_eight_attributes_of_the_paper_with_their_kinds():
    said = quotes.Quote("IBM-2004", "2004-01-02", 1.0, 2.0, 0.5, 1.5, 7).attributes()
    assert said == {
        "class": "STOCK", "symbol": "IBM-2004", "open": 1.0, "high": 2.0, "low": 0.5, "close": 1.5, "volume": 7,
        "date": "2004-01-02",
    }  # fmt: skip
    assert [type(said[name]) for name in ("open", "volume", "date")] == [float, int, str]


def test_a_line_that_is_no_quote_is_named():
    with pytest.raises(quotes.QuotesError, match="line 3 "):
        list(quotes.parse_quotes([TABLE, "FB,2012-05-18,1,2,1,2,10,1\n", "FB,2012-05-21,1,2,oops,2,10,1\n"]))
    with pytest.raises(quotes.QuotesError, match="line 2 "):
        list(quotes.parse_quotes([TABLE, "FB,2012-05-18\n"]))


def test_a_table_without_a_column_is_refused():
    with pytest.raises(quotes.QuotesError, match="no column Volume"):
        list(quotes.parse_quotes(["Ticker,Date,Open,High,Low,Close\n"]))


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(quotes, "PACKAGE", "no_such_package_here")
    with pytest.raises(quotes.QuotesError, match="run make demo in a checkout"):
        quotes.load()
