"""A judge of consumer groups, written from docs/groups.md alone: it shares no code with what it judges.

`judge` reads a journal and returns each promise of that page that was broken, with where.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator

from tests.core.group_journal import Ended, Fault, Finished, Item, Journal, Published, Told, Took

SETTLED_SECONDS = 2.0
"""Beyond a bound that the page names, for messages and rounds."""
ATTACHED_SECONDS = 1.0
"""From when an application is told of a slice until an edge serves it."""


def judge(journal: Journal) -> list[str]:
    """Broken promises, in words; empty if all hold."""
    found = [
        *_told_truly(journal),
        *_taken_once_in_order(journal),
        *_marked_for_a_reason(journal),
        *_one_owner(journal),
        *_acknowledged_for_good(journal),
        *_in_their_slices(journal),
        *_nothing_lost(journal),
        *_sessions(journal),
        *_at_rest(journal),
    ]
    return found[:20]


def _events(journal: Journal, kind: type) -> Iterator[tuple[int, object]]:
    return ((number, each) for number, each in enumerate(journal.events) if isinstance(each, kind))


def _told_truly(journal: Journal) -> Iterator[str]:
    """`on_change` tells when slices come and go, and an application is given items of the slices that it has."""
    has: dict[str, set[int]] = defaultdict(set)
    ended: set[str] = set()
    for each in journal.events:
        if isinstance(each, Ended):
            ended.add(each.who)
        elif isinstance(each, Told):
            if again := has[each.who] & set(each.came):
                yield f"told: {each} of slices {sorted(again)} that it has"
            if unknown := set(each.went) - has[each.who]:
                yield f"told: {each} of slices {sorted(unknown)} that it has not"
            has[each.who] = (has[each.who] | set(each.came)) - set(each.went)
        elif isinstance(each, Took):
            if each.slice not in has[each.who]:
                yield f"told: {each} of a slice that it was not told to have"
            if each.who in ended:
                yield f"told: {each} after its end"


def _taken_once_in_order(journal: Journal) -> Iterator[str]:
    """Each item once, in order per slice and publisher; what may come again is marked."""
    taken: dict[Item, Took] = {}
    highest: dict[tuple[int, str], int] = {}
    for each in journal.events:
        if not isinstance(each, Took) or each.item is None:
            continue
        if each.item in taken and not each.is_marked:
            yield f"repeated: {each} without a mark, after {taken[each.item]}"
        publisher, number = each.item
        if number < highest.get((each.slice, publisher), 0) and not each.is_marked:
            yield f"reordered: {each} behind {highest[each.slice, publisher]}"
        highest[each.slice, publisher] = max(number, highest.get((each.slice, publisher), 0))
        taken[each.item] = each


def _marked_for_a_reason(journal: Journal) -> Iterator[str]:
    """Marked is what another consumer may have been given that has died or was cut off, or a head has forgotten."""
    last: float | None = None
    for each in journal.events:
        if isinstance(each, Fault) and each.kind != "edge":
            last = max(last or 0.0, each.until)
        elif (isinstance(each, Ended) and each.how == "crashed") or (isinstance(each, Told) and each.why == "lost"):
            last = max(last or 0.0, each.at)
        elif isinstance(each, Took) and each.item is not None and each.is_marked:
            published = journal.published[each.item].at
            if last is None:
                yield f"marked: {each}, and no consumer has gone before"
            elif published > last + journal.gone_seconds + SETTLED_SECONDS:
                yield f"marked: {each}, published {published - last:.1f} s after the last consumer had gone"


def _one_owner(journal: Journal) -> Iterator[str]:
    """No two live applications have a slice: from when one has it, none that had it before takes more of it."""
    owners: dict[int, list[str]] = defaultdict(list)  # by when they were told
    hand: dict[tuple[str, int], set[Item]] = defaultdict(set)
    excused: dict[str, float] = {}
    for each in journal.events:
        if isinstance(each, Fault) and each.kind != "edge":
            excused[each.what] = max(each.until, excused.get(each.what, 0.0)) + journal.gone_seconds + SETTLED_SECONDS
        elif isinstance(each, Ended):
            for key in [key for key in hand if key[0] == each.who]:
                del hand[key]
            for number in owners:
                owners[number] = [who for who in owners[number] if who != each.who]
        elif isinstance(each, Told):
            if each.why == "lost":
                for number in each.went:
                    hand.pop((each.who, number), None)
            for number in set(each.came) | set(each.went):
                owners[number] = [who for who in owners[number] if who != each.who]
            for number in each.came:
                owners[number].append(each.who)
        elif isinstance(each, Took):
            if owners[each.slice] and owners[each.slice][-1] != each.who:
                yield f"two owners: {each}, and {owners[each.slice][-1]} has it by now"
            for (who, number), items in hand.items():
                is_other = number == each.slice and who != each.who and items
                is_excused = any(excused.get(x, 0.0) >= each.at for x in (who.partition("/")[0], "h", "w"))
                if is_other and not is_excused:
                    yield f"two owners: {each}, while {who} has {sorted(items)[:3]} of it in hand"
            if each.item is not None:
                hand[each.who, each.slice].add(each.item)
        elif isinstance(each, Finished):
            hand[each.who, each.slice].discard(each.item)


def _acknowledged_for_good(journal: Journal) -> Iterator[str]:
    """Acknowledgements go to the head with the next beat: what was acknowledged two beats before a death is done."""
    done: dict[Item, Finished] = {}
    faults = [each for each in journal.events if isinstance(each, Fault)]
    ends = {each.who: each.at for each in journal.events if isinstance(each, Ended)}
    for each in journal.events:
        if isinstance(each, Finished) and each.in_turn:
            done[each.item] = each
        elif isinstance(each, Took) and each.item in done:
            before = done[each.item]
            until = before.at + 2 * journal.beat_seconds + 0.1
            was_reachable = not any(
                fault.at < each.at and fault.until + SETTLED_SECONDS > before.at for fault in faults
            )
            if was_reachable and until < min(each.at, ends.get(before.who, each.at)):
                yield f"done: {each}, which {before.who} has acknowledged {each.at - before.at:.2f} s before"


def _slice_of(journal: Journal, published: Published) -> set[int] | None:
    """The slices that an item may be in; empty for none, None where only its publisher's client can say."""
    publisher, value = published.item[0], published.attributes.get(journal.by)
    by_publisher = {zlib.crc32(publisher.encode()) % journal.count}
    none = by_publisher if journal.unassigned == "Hash" else set()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match journal.function:
        case "Modulo":
            return {int(value) % journal.count} if is_number and value == int(value) else none  # type: ignore[arg-type]  # it is a number
        case "Hash":
            return none if value is None else None
        case "Publisher":
            return by_publisher
        case "Range":
            if not is_number or not journal.low <= value <= journal.high:  # type: ignore[operator]  # it is a number
                return none
            share = (value - journal.low) / (journal.high - journal.low)  # type: ignore[operator]  # it is a number
            return {min(int(share * journal.count), journal.count - 1)}
        case "Application":
            return {published.attributes["sensor"] % journal.count}
        case _:
            return None


def _in_their_slices(journal: Journal) -> Iterator[str]:
    """The function gives each publication its slice; the same value of the attribute is in the same one."""
    seen: dict[object, int] = {}
    for each in journal.events:
        if not isinstance(each, Took) or each.item is None:
            continue
        published = journal.published[each.item]
        allowed = _slice_of(journal, published)
        if allowed is not None and each.slice not in allowed:
            yield f"slice: {each}, and it is in {sorted(allowed)} by {journal.function} of {dict(published.attributes)}"
        value = published.attributes.get(journal.by)
        key = (isinstance(value, bool), value) if journal.function == "Hash" else each.item
        if allowed is None and seen.setdefault(key, each.slice) != each.slice:
            yield f"slice: {each}, and {key} was in {seen[key]} before"


def _nothing_lost(journal: Journal) -> Iterator[str]:
    """All that a head has accepted is processed; but for what it has forgotten in dying, which a gap tells.

    A slice that no consumer has ever had begins at the end of the log when its first one comes; so it does when the
    head has died and none is left that had slices before. A gap has in it what was accepted before a head has died, and
    what came before the slice had a consumer again.
    """
    finished = {each.item for each in journal.events if isinstance(each, Finished)}
    faults = [each for each in journal.events if isinstance(each, Fault)]
    heads = [each for each in faults if each.kind == "head"]
    first: dict[int, float] = {}
    known: set[str] = set()
    died = 0.0
    begins: set[int] = set()
    gaps: list[tuple[int, float, bool]] = []  # of a slice, taken at a time, and whether its consumer begins with it
    for each in journal.events:
        if isinstance(each, Fault) and each.kind == "head":
            died = each.until
        elif isinstance(each, Ended):
            known.discard(each.who)
        elif isinstance(each, Told):
            if each.came and died and each.at >= died:
                if not known:
                    first.clear()
                died = 0.0
            known |= {each.who} if each.came else set()
            begins |= set(each.came)
            for number in set(each.came) - first.keys():
                hit = [one.until for one in faults if one.at <= each.at + ATTACHED_SECONDS and one.until >= each.at]
                first[number] = max([each.at, *hit]) + ATTACHED_SECONDS
        elif isinstance(each, Took):
            if each.item is None:
                gaps.append((each.slice, each.at, each.slice in begins))
                if not any(fault.at < each.at for fault in heads):
                    yield f"gap: {each}, and no head has died"
            else:
                begins.discard(each.slice)
    for item, published in journal.published.items():
        allowed = _slice_of(journal, published)
        if item in finished or published.answered is None or allowed == set():
            continue
        numbers = range(journal.count) if allowed is None else allowed
        at = published.at
        if at < max(first.get(number, 0.0) for number in numbers):
            continue
        died = max((fault.until for fault in heads), default=0.0)
        if not any(number in numbers and at < taken and (at < died or starts) for number, taken, starts in gaps):
            yield f"lost: {published}, and no gap tells so"


def _sessions(journal: Journal) -> Iterator[str]:
    """What a session says has moved is with its taker; what was counted is without faults where there were none."""
    is_calm = not any(
        (isinstance(each, Fault) and each.kind != "edge") or (isinstance(each, Ended) and each.how == "crashed")
        for each in journal.events
    )
    for one in journal.sessions:
        if is_calm and any(one.audit):
            yield f"audit: {one}, and no consumer has died"
        if not one.taker:
            continue
        came = {
            number
            for each in journal.events
            if isinstance(each, Told) and each.who.partition("/")[0] == one.taker and one.asked <= each.at
            for number in each.came
        }
        if lacking := {number for number, state in one.outcomes.items() if state == "moved"} - came:
            yield f"session: {one}, and {one.taker} was not told of {sorted(lacking)}"


def _at_rest(journal: Journal) -> Iterator[str]:
    """After quiet each slice has one consumer, all have their share, and nothing waits."""
    rest = journal.rest
    if rest is None:
        yield "rest: the run has no end"
        return
    owners: dict[int, list[str]] = defaultdict(list)
    for who, numbers in rest.has.items():
        for number in numbers:
            owners[number].append(who)
    for number in range(journal.count):
        if len(owners[number]) != 1:
            yield f"rest: slice {number} has the owners {owners[number]}"
    told: dict[str, set[int]] = defaultdict(set)
    for each in journal.events:
        if isinstance(each, Told):
            told[each.who] = (told[each.who] | set(each.came)) - set(each.went)
    for who, numbers in rest.has.items():
        if told[who] != set(numbers):
            yield f"rest: {who} has {numbers}, and was told of {sorted(told[who])}"
    even = journal.count // len(rest.has)
    for who in rest.has.keys() - rest.unsure:
        least = even if who in rest.newcomers else min(1, even)
        if len(rest.has[who]) < least:
            yield f"rest: {who} has {len(rest.has[who])} slices, and {least} are its share of {journal.count}: {rest}"
    if rest.lag or rest.without_consumer:
        yield f"rest: a lag of {rest.lag}, {rest.without_consumer} slices without a consumer"
