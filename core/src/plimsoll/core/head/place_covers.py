"""The lists of durable places, covered by the head itself: neighbours go on sending what they ask for."""

from __future__ import annotations

from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.ownership import AWAY_KEY
from plimsoll.core.protocol import messages as msg


class PlaceCovers:
    """What is covered for each subscriber: the number of each text."""

    def __init__(self, covers: CoverUpdates) -> None:
        self._covers = covers
        self._numbers: dict[str, dict[str, int]] = {}
        self._last_number = 0

    def cover(self, subscriber: str, texts: list[str]) -> None:
        """Cover this list in the place of the one before, in one step."""
        before, wanted = self._numbers.get(subscriber, {}), dict.fromkeys(texts)
        adds = []
        for text in wanted:
            if text not in before:
                self._last_number += 1
                adds.append(msg.CoverItem(self._last_number, text))
        gone = [number for text, number in before.items() if text not in wanted]
        self._covers.change(AWAY_KEY, msg.Cover(0, adds, gone))
        kept = {text: number for text, number in before.items() if text in wanted}
        self._numbers[subscriber] = kept | {item.text: item.id for item in adds}
        if not wanted:
            del self._numbers[subscriber]
