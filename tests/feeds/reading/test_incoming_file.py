"""A file that is received: parts in any order, and what is refused when all have come."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.feeds.reading.test_dataset_copy import recorded

from plimsoll.core.protocol import messages as msg
from plimsoll.feeds.reading.incoming_file import IncomingFile
from plimsoll.feeds.reading.table_reader import FeedReadError, PartReceived


def test_parts_come_in_any_order(tmp_path: Path) -> None:
    dataset = recorded(tmp_path / "feed", hours=1)
    (file,) = dataset.state.table("rows")
    content = (dataset.root / file.path).read_bytes()
    incoming = IncomingFile(tmp_path / "incoming")
    for offset in (100, 0, 100):
        incoming.take(PartReceived(offset, content[offset:] if offset else content[:100]))
    item = msg.FeedFileItem(1, 9, 8, len(content), file.first_us, file.last_us)
    incoming.complete("stocks", "rows", item)
    assert incoming.path.read_bytes() == content
    with pytest.raises(FeedReadError, match="the file of stocks with rows 2 to 9 has 8 rows, 1 to 9"):
        incoming.complete("stocks", "rows", msg.FeedFileItem(2, 9, 8, len(content), 0, 0))
    incoming.discard()
    assert not incoming.path.exists()
    dataset.close()
