"""The file of contexts: kept private, and refused where it is wrong."""

from __future__ import annotations

import pytest

from plimsoll.cli.contexts.context_file import ContextFile, StoredContext, context_path, read_contexts, write_contexts
from plimsoll.cli.exit_codes import FAILED, CommandError


def test_what_is_written_is_read_and_is_for_its_user_alone():
    assert read_contexts() == ContextFile()
    made = ContextFile("a", {"a": StoredContext(addresses=("tcp://h:1",), plain=True), "b": StoredContext(fleet="q")})
    write_contexts(made)
    assert read_contexts() == made
    assert context_path().stat().st_mode & 0o777 == 0o600
    assert '"plain": true' in context_path().read_text()


@pytest.mark.parametrize("text", ["{", "[]", '{"contexts": {"a": {"adresses": []}}}', '{"current": 5}'])
def test_a_wrong_file_is_named(text: str):
    write_contexts(ContextFile())
    context_path().write_text(text)
    with pytest.raises(CommandError, match=r"cannot read .*contexts\.json: .*; correct it, or remove it") as caught:
        read_contexts()
    assert caught.value.code == FAILED
