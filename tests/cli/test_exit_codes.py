from plimsoll.cli import exit_codes


def test_each_code_has_one_meaning_that_help_lists():
    numbers = [
        exit_codes.OK,
        exit_codes.FAILED,
        exit_codes.BAD_INPUT,
        exit_codes.NOT_FOUND,
        exit_codes.CONFLICT,
        exit_codes.INTERRUPTED,
    ]
    assert len(set(numbers)) == len(numbers)
    assert [int(line.split()[0]) for line in exit_codes.EXIT_CODE_HELP.splitlines()[1:]] == numbers
    assert exit_codes.CommandError(exit_codes.CONFLICT, "why").code == exit_codes.CONFLICT
