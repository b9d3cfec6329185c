from plimsoll.cli import codes


def test_each_code_has_one_meaning_that_help_tells():
    numbers = [codes.OK, codes.FAILED, codes.BAD_INPUT, codes.NOT_FOUND, codes.CONFLICT, codes.INTERRUPTED]
    assert len(set(numbers)) == len(numbers)
    assert [int(line.split()[0]) for line in codes.MEANINGS.splitlines()[1:]] == numbers
    assert codes.CommandError(codes.CONFLICT, "why").code == codes.CONFLICT
