"""Access to a fleet without keys; with keys it is tested with a running fleet."""

from plimsoll.local.head_access import head_access


def test_a_plain_fleet_needs_no_key(fleet):
    fleet.up(
        fleet.TEXT.replace("metadata: {name: quotes}", "metadata: {name: quotes}\nspec: {security: {plain: true}}")
    )
    way = head_access(fleet.folder)
    assert (way.cluster, way.server, way.secret_key_file) == ("east", "", None)
