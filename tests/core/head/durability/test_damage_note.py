"""What starts have found damaged is noted beside the log, until it is known that others have been told."""

from __future__ import annotations

import pytest
from tests.core.head.durability.conftest import MemoryFiles

from plimsoll.core.head.durability.damage_note import DAMAGE_NOTE, ROOM, TEXTS, UNREADABLE, DamageNote, FoundDamage


def noted(files: MemoryFiles, *texts: str, epoch: int = 0, is_whole: bool = True) -> DamageNote:
    note = DamageNote(files)
    note.read()
    for text in texts:
        note.add(text, 0, is_whole=is_whole)
    if epoch:
        note.began(epoch)
    return note


def read(files: MemoryFiles) -> FoundDamage:
    return DamageNote(files).read()


def test_a_log_without_damage_has_no_note(files: MemoryFiles):
    note = noted(files, epoch=5)
    note.try_again()
    assert (files.files, read(files)) == ({}, FoundDamage())


def test_damage_outlasts_starts_that_end_before_their_life_began(files: MemoryFiles):
    noted(files, "a", is_whole=False)
    assert files.settled[-1][0] == DAMAGE_NOTE
    assert read(files) == FoundDamage(0, 0, is_whole=False, parts=1, texts=("a",))
    noted(files, "a", "b")
    assert read(files) == FoundDamage(0, 0, is_whole=False, parts=2, texts=("a", "b")), "what is found again is one"


def test_the_same_damage_in_a_later_life_is_another(files: MemoryFiles):
    noted(files, "a", epoch=5)
    assert read(files) == FoundDamage(5, 0, parts=1, texts=("a",))
    noted(files, "a", epoch=6)
    assert read(files) == FoundDamage(6, 0, parts=2, texts=("a", "a"))


def test_a_later_life_that_finds_nothing_more_leaves_the_note(files: MemoryFiles):
    noted(files, "a", epoch=5)
    noted(files, epoch=6)
    assert read(files).epoch == 5


def test_an_epoch_that_is_less_counts_from_then_on(files: MemoryFiles):
    """The clock was set back, and the log was gone: no later status would have the greater one."""
    noted(files, "a", epoch=5)
    noted(files, epoch=4)
    assert read(files).epoch == 4


def test_damage_of_a_life_that_has_begun_has_its_position(files: MemoryFiles):
    note = noted(files, epoch=5)
    note.add("a", 70)
    assert read(files) == FoundDamage(5, 70, parts=1, texts=("a",))


@pytest.mark.parametrize(
    ("known", "is_kept"), [((0, 0), True), ((4, 90), True), ((5, 70), True), ((5, 71), False), ((6, 1), False)]
)
def test_it_goes_when_a_later_position_is_known_elsewhere(files: MemoryFiles, known: tuple[int, int], is_kept: bool):
    noted(files, epoch=5).add("a", 70)
    DamageNote(files).forget_known(*known)
    assert (DAMAGE_NOTE in files.files) is is_kept


def test_it_stays_while_no_life_has_begun_with_it(files: MemoryFiles):
    noted(files, "a")
    DamageNote(files).forget_known(9, 9)
    assert read(files).parts == 1


def test_a_note_that_was_made_and_not_written_is_none(files: MemoryFiles):
    files.create(DAMAGE_NOTE, ROOM)
    assert read(files) == FoundDamage()
    DamageNote(files).forget_known(0, 0)
    assert files.files == {}


@pytest.mark.parametrize("at", [2, 6, 12])
def test_a_note_that_is_torn_is_damage(files: MemoryFiles, at: int):
    noted(files, "a", epoch=5)
    files.files[DAMAGE_NOTE][at] ^= 1
    assert read(files) == UNREADABLE


def test_a_note_of_another_shape_is_damage(files: MemoryFiles, monkeypatch: pytest.MonkeyPatch):
    note = noted(files)
    monkeypatch.setattr(note, "found", FoundDamage(texts=(7,)))  # type: ignore[arg-type]  # another shape
    note.add("a", 0)
    assert read(files) == UNREADABLE


def test_it_is_bounded(files: MemoryFiles):
    noted(files, *(f"{i} \udcff \N{SNOWMAN}" * 1000 for i in range(20)))
    assert len(files.files[DAMAGE_NOTE]) == ROOM
    found = read(files)
    assert (found.parts, len(found.texts), found.texts[-1][:15]) == (20, TEXTS, "19 \\udcff \\u260")


def test_without_room_it_says_so_and_is_tried_again(files: MemoryFiles):
    files.is_full = True
    note = noted(files, "a", "b", epoch=5)
    note.try_again()
    assert (note.fault, note.found.parts, files.files) == ("full", 2, {})
    files.is_full = False
    note.try_again()
    assert (note.fault, read(files)) == ("", FoundDamage(5, 0, parts=2, texts=("a", "b")))
