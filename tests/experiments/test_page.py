"""The page needs nothing but itself."""

from tests.experiments.test_result import RESULT

from plimsoll.experiments.page import page


def test_the_page_refers_to_nothing_outside():
    text = page(RESULT)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert text.count("<svg") == 1
