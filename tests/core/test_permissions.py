"""What a grant permits, and how a request beyond it is refused."""

from __future__ import annotations

from plimsoll.core.permissions import ALL_PERMISSIONS, NO_PERMISSIONS, ClientPermissions


def test_who_may_do_everything_is_refused_nothing():
    assert ALL_PERMISSIONS.publish_refusal == ALL_PERMISSIONS.subscribe_refusal == ""


def test_a_refusal_names_the_identity_and_the_role_that_it_lacks():
    assert ClientPermissions("ann", publishes=False).publish_refusal == "ann may not publish; its roles lack publish"
    assert ClientPermissions("ann", publishes=False).subscribe_refusal == ""
    assert (
        ClientPermissions("ann", subscribes=False).subscribe_refusal
        == "ann may not subscribe; its roles lack subscribe"
    )
    assert NO_PERMISSIONS.publish_refusal
    assert NO_PERMISSIONS.subscribe_refusal
