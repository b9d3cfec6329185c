"""The environment of an operator."""

import pytest

from plimsoll.operator.settings import OperatorSettings, OperatorSettingsError, read_settings


def test_an_empty_environment_serves_every_namespace():
    assert read_settings({}) == OperatorSettings()
    assert OperatorSettings().namespaces == ()


def test_what_a_pod_is_told():
    found = read_settings({
        "PLIMSOLL_NAMESPACES": "a, b", "PLIMSOLL_BROKER_IMAGE": "r/b:1", "PLIMSOLL_READ_NODES": "true",
        "PLIMSOLL_LOG_LEVEL": "debug", "POD_NAME": "o-1", "POD_NAMESPACE": "a", "PLIMSOLL_HTTP_PORT": "0",
        "PLIMSOLL_IMAGE_PULL_SECRETS": "here,there", "PLIMSOLL_METRICS_TLS": "/tls", "PLIMSOLL_HTTPS_PORT": "0",
    })  # fmt: skip
    assert (found.namespaces, found.broker_image, found.read_nodes) == (("a", "b"), "r/b:1", True)
    assert (found.metrics_tls, found.https_port) == ("/tls", 0)
    assert found.pull_secrets == ("here", "there")
    assert (found.pod_name, found.canary, found.http_port, found.log_level) == (
        "o-1", "a/plimsoll-operator-canary", 0, "DEBUG",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [("PLIMSOLL_READ_NODES", "yes"), ("PLIMSOLL_HTTP_PORT", "99999"), ("PLIMSOLL_LOG_LEVEL", "loud")],
)
def test_what_cannot_be_used_is_named(name: str, value: str):
    with pytest.raises(OperatorSettingsError, match=name):
        read_settings({name: value})
