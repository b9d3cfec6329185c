"""Whole journals: random clean worlds pass, and one planted fault of any kind is found."""

from __future__ import annotations

import random

import pytest

from plimsoll.core.verify import LawAudit, audit_journal
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.oracle import matches


def world(seed: int, publications: int = 60, readers: int = 6) -> list[seen.Observation]:
    """A fault-free fleet of one head: subscriptions come and go, each delivery takes some time, order is kept."""
    draw = random.Random(seed)
    journal: list[seen.Observation] = []
    lives: list[tuple[str, list[seen.Triple], float, float]] = []
    for number in range(readers):
        for key in range(draw.randrange(1, 4)):
            rule: list[seen.Triple] = [
                ("k", "=", draw.randrange(4)),
                ("v", draw.choice(["<", ">="]), draw.randrange(10)),
            ]
            rule = rule[draw.randrange(2) :]
            start, end = draw.uniform(0, 20), draw.choice([1e9, draw.uniform(30, 60)])
            journal += [
                seen.SubscriptionObserved(f"s{number}", 1, key, rule, start),
                seen.AcknowledgementObserved(f"s{number}", 1, [key], "h", [], start + 1),
            ]
            if end < 1e9:
                journal += [
                    seen.WithdrawalObserved(f"s{number}", 1, [key], end),
                    seen.RemovalObserved(f"s{number}", 1, [key], end + 1),
                ]
            lives.append((f"s{number}", rule, start + 1, end))
    for seq in range(1, publications + 1):
        attributes = {"k": draw.randrange(4), "v": draw.randrange(10)}
        identity, origin = ("p", 1, seq), ("h", 1, seq)
        journal += [
            seen.PublicationObserved("p", 1, seq, attributes, seq * 1.0),
            seen.LogEntryObserved("h", 1, seq, identity, origin, seq + 0.1),
            seen.AnswerObserved("p", 1, seq, "accepted", seq + 0.2),
        ]
        for name in sorted(
            {name for name, rule, start, end in lives if start <= seq + 0.1 < end and matches(rule, attributes)}
        ):
            journal.append(seen.DeliveryObserved(name, 1, identity, origin, seq + 0.5))
    return journal


def test_clean_worlds_pass():
    for seed in range(100):
        verdict = audit_journal(world(seed))
        assert verdict.ok, (seed, str(verdict))
        assert verdict.expected > 20, seed


def test_writers_may_be_interleaved_in_any_way():
    journal = world(3)
    shuffled = sorted(journal, key=lambda one: (type(one).__name__ == "Delivered", random.Random(1).random()))
    assert audit_journal(shuffled) == audit_journal(journal)


FAULTS = {"lose": "I1", "repeat": "I2", "reorder": "I3", "misdirect": "I8", "invent": "I8"}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_anywhere_is_found(fault):
    for seed in range(100):
        journal = world(seed)
        places = [i for i, one in enumerate(journal) if isinstance(one, seen.DeliveryObserved)]
        place = random.Random(seed).choice(places)
        damage(journal, place, fault)
        verdict = audit_journal(journal)
        assert FAULTS[fault] in verdict.violated, (seed, fault, str(verdict))


def damage(journal: list[seen.Observation], place: int, fault: str) -> None:
    one = journal[place]
    assert isinstance(one, seen.DeliveryObserved)
    others = [
        i
        for i, each in enumerate(journal)
        if isinstance(each, seen.DeliveryObserved) and each.subscriber == one.subscriber
    ]
    if fault == "lose":
        # At an end of the subscription a missing one is uncertain: take one that others of its stream have overtaken.
        del journal[others[0]]
    elif fault == "repeat":
        journal.append(one)
    elif fault == "reorder":
        first, second = others[0], others[1]
        journal[first], journal[second] = journal[second], journal[first]
    elif fault == "misdirect":
        journal.append(seen.DeliveryObserved("unknown", 1, one.publication, one.origin, one.at))
    else:
        journal.append(seen.DeliveryObserved(one.subscriber, 1, ("p", 1, 999), ("h", 1, 999), 99.0))


def test_an_answer_to_what_was_never_subscribed_is_named():
    assert audit_journal([seen.AcknowledgementObserved("s", 1, [4], "h", [], 1.0)]).violated == {"I8": 1}


def test_an_audit_takes_nothing_else():
    with pytest.raises(TypeError, match="not an observation"):
        LawAudit().take("hello")  # type: ignore[arg-type]  # not an observation


def test_a_demonstration_is_judged_as_a_whole():
    """200 subscribers and 5,000 publications: a demonstration has ten times as many pairs of them."""
    one = LawAudit()
    for number in range(200):
        rule: list[seen.Triple] = [("symbol", "=", f"S{number % 40}"), ("high", ">", float(number % 7))]
        one.take(seen.SubscriptionObserved(f"s{number}", 1, 1, rule, 0.0))
        one.take(seen.AcknowledgementObserved(f"s{number}", 1, [1], "h", [], 0.5))
    for seq in range(1, 5001):
        attributes: dict[str, seen.Value] = {"symbol": f"S{seq % 40}", "high": float(seq % 9)}
        one.take(seen.PublicationObserved("p", 1, seq, attributes, float(seq)))
        one.take(seen.AnswerObserved("p", 1, seq, "accepted", float(seq)))
        for number in range(seq % 40, 200, 40):
            if seq % 9 > number % 7:
                one.take(seen.DeliveryObserved(f"s{number}", 1, ("p", 1, seq), ("h", 1, seq), seq + 1.0))
    verdict = one.verdict()
    assert verdict.ok, str(verdict)
    assert verdict.delivered == verdict.expected > 10_000
