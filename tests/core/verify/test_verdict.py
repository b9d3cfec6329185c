"""A verdict reads well for people and programs."""

from __future__ import annotations

import json

from plimsoll.core.verify import audit_journal
from plimsoll.core.verify import observations as seen


def test_a_verdict_says_what_and_where():
    verdict = audit_journal(
        [seen.SizeObserved("h1", "log_bytes", 3, 2, 1.5), seen.PublicationObserved("p", 1, 1, {}, 1.0)]
    )
    assert not verdict.ok
    assert verdict.violated == {"I6": 1, "I8": 1}
    assert "published 1" in str(verdict)
    assert "I6 at 1.500000 h1: log_bytes is 3, bounded by 2" in str(verdict)
    assert json.loads(json.dumps(verdict.as_dict()))["violated"] == {"I6": 1, "I8": 1}


def test_nothing_is_a_clean_run():
    verdict = audit_journal([])
    assert verdict.ok
    assert str(verdict) == "nothing happened"
