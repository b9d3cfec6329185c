"""What a grant says of itself, and how it is refused."""

from __future__ import annotations

from plimsoll.core.grants import EVERYTHING, NOTHING, Grant


def test_who_may_do_everything_is_refused_nothing():
    assert EVERYTHING.why_not_publish == EVERYTHING.why_not_subscribe == ""


def test_a_refusal_names_the_identity_and_the_role_that_it_lacks():
    assert Grant("ann", publishes=False).why_not_publish == "ann may not publish; its roles lack publish"
    assert Grant("ann", publishes=False).why_not_subscribe == ""
    assert Grant("ann", subscribes=False).why_not_subscribe == "ann may not subscribe; its roles lack subscribe"
    assert NOTHING.why_not_publish
    assert NOTHING.why_not_subscribe
