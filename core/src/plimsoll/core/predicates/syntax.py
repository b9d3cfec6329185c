"""The written form of predicates: `[attribute,operator,operand]`, joined by commas.

    subscription = predicate { "," predicate }
    predicate    = "[" attribute "," operator [ "," operand ] "]"      no operand after `exists`
    operand      = literal | "(" literal { "," literal } ")"           the list after `in`, of one kind
    literal      = string | number | "true" | "false" | [ "-" ] "inf"
    string       = "'" ... "'" | '"' ... '"'                           escapes \\\\ \\' \\" \\n \\r \\t \\u{hex}
    attribute    = letter or "_", then letters, digits, "_" "-" "." ":" "/" "$" | string

White space is free between tokens. Every error names the column (from 1), what was found and what was expected.
Reading takes time linear in the text, and what is built of it is bounded: a broker reads what strangers write.
"""

import re
import sys
from collections.abc import Iterator

from plimsoll.core.predicates.canonical_form import OPERATORS, operand_error
from plimsoll.core.predicates.constraints import Operand, Operator, Value, kind_of

_BARE = re.compile(r"[^\W\d][\w\-.:/$]*")
_OPERATOR = re.compile(r"!=|<=|>=|=|<|>|(?:in|prefix|suffix|contains|exists)\b")
_NUMBER = re.compile(r"[+-]?(?:inf\b|[0-9]+(\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|(\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_TOKEN = re.compile(r"[\w.+\-]+|.", re.DOTALL)
_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
_UNESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CODE_POINT = re.compile(r"u\{([0-9a-fA-F]{1,6})\}")
_WORD = re.compile(r"(?:true|false)\b")
_CONDITION = re.compile(r"([^\W\d][\w\-.]{0,60})\s?(!=|<=|>=|=|<|>)\s?['\"]?([\w.+\-]{1,60})['\"]?\s*(?:,|$)")
_SPACE = re.compile(r"\s*")
_WORD_BEHIND = re.compile(r"[\w.]")
_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in ("'", '"')}
_QUOTED = {quote: re.compile(rf"{quote}((?:[^{quote}\\]++|\\.)*){quote}", re.DOTALL) for quote in ("'", '"')}
_RARE_ESCAPE = re.compile(r"\\[^'\"nrt]")
_ESCAPED = {ord(char): written for char, written in _UNESCAPES.items()}
# What is usually written is read in one step. The patterns admit nothing that the rules refuse, or read otherwise.
_USUAL = re.compile(
    r"\s*+\[\s*+([^\W\d][\w\-.:/$]*+)\s*+,\s*+(!=|<=|>=|=|<|>|prefix\b|suffix\b)\s*+,"
    r"\s*+(?:([+-]?[0-9]{1,300}+)|'([^'\\]*+)')\s*+\]"
)
_EACH_OF_RUN = re.compile(
    r"\s*+\[\s*+([^\W\d][\w\-.:/$]*+)\s*+,\s*+(?:(!=|<=|>=|=|<|>)\s*+,\s*+([+-]?[0-9]{1,300}+)"
    r"|(!=|=|prefix|suffix|contains)\s*+,\s*+'([^'\\]*+)')\s*+\]\s*+,"
)
# The same without groups: Python 3.11 fails on groups that are repeated around possessive quantifiers.
_RUN = re.compile(f"(?:{re.sub(r'[(](?![?])', '(?:', _EACH_OF_RUN.pattern)}){{2,255}}")
RUN_CHARACTERS = 256
"""Of a text whose usual predicates are read many at once; in a shorter one they are too few for that."""
_LIST = r"\(\s*+(?:{0})(?:\s*+,\s*+(?:{0})){{0,2047}}\s*+\)"
_NUMBERS = re.compile(_LIST.format(r"[+-]?(?:[0-9]{1,300}+(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"))
_STRINGS = re.compile(_LIST.format(r"'[^'\\]*+'"))
_EACH_STRING = re.compile(r"'([^'\\]*+)'")
USUAL_DIGITS = 300  # as in the patterns above
MAX_DIGITS = 400  # longer integers are no useful quantity and take quadratic time to parse
PREDICATES_AT_MOST = 256
"""Predicates of a subscription. Bounds what canonical form, covering and matching compare."""
VALUES_AT_MOST = 2048
"""Values of all `in` lists of a subscription, for the same reason. More go into further subscriptions."""
PIECES_AT_MOST = 16
"""`contains` predicates of a subscription: each is searched for in every value that might match."""

interned = sys.intern


class ParseError(ValueError):
    """The text is not a subscription: `column` counts from 1, `found` and `expected` say what was wrong there."""

    def __init__(self, column: int, found: str, expected: str) -> None:
        super().__init__(f"column {column}: found {found}, expected {expected}")
        self.column = column
        self.found = found
        self.expected = expected

    def __reduce__(self) -> tuple[type["ParseError"], tuple[int, str, str]]:
        return ParseError, (self.column, self.found, self.expected)


def parse_triples(written: str) -> Iterator[tuple[str, Operator, Operand]]:
    """The (attribute, operator, operand) triples of a text, at least one; `ParseError` at the first fault."""
    reader = _PredicateReader(written)
    yield from (run := reader.run(PREDICATES_AT_MOST - 1))
    yield reader.predicate()
    count = 1 + len(run)
    while reader.take(","):
        if count == PREDICATES_AT_MOST:
            raise reader.too_many("predicates", PREDICATES_AT_MOST)
        yield from (run := reader.run(PREDICATES_AT_MOST - 1 - count))
        count += 1 + len(run)
        yield reader.predicate()
    if not reader.at_end():
        raise reader.error("',' or the end of the text")


class _PredicateReader:
    """A cursor over the text; each method reads one rule of the grammar or raises an error at the cursor."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.values = self.pieces = 0
        self.reads_runs = True

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def at_end(self) -> bool:
        self.space()
        return self.at == len(self.text)

    def error(self, expected: str, at: int | None = None) -> ParseError:
        at = self.at if at is None else at
        token = _TOKEN.match(self.text, at)
        shown = token.group()[:40] if token else ""
        return ParseError(at + 1, repr(shown) if shown else "the end of the text", expected)

    def too_many(self, what: str, most: int) -> ParseError:
        return ParseError(self.at + 1, f"more than {most} {what}", f"at most {most}; make several subscriptions of it")

    def take(self, mark: str) -> bool:
        self.space()
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def need(self, mark: str, expected: str = "") -> None:
        if not self.take(mark):
            raise self.error(expected or repr(mark))

    def run(self, most: int) -> list[tuple[str, Operator, Operand]]:
        """Usual predicates with a comma behind each, read at once; none if there are few, or more than `most`.

        What is too many is found one by one, where it is too many.
        """
        if not self.reads_runs or len(self.text) - self.at < RUN_CHARACTERS:
            return []
        found = _RUN.match(self.text, self.at)
        if found is None:
            return []
        each = _EACH_OF_RUN.findall(self.text, self.at, found.end())
        pieces = self.pieces + [textual for _, _, _, textual, _ in each].count("contains")
        if len(each) > most or pieces > PIECES_AT_MOST:
            self.reads_runs = False  # else each of them would be matched again with each that is before it
            return []
        self.at, self.pieces = found.end(), pieces
        return [
            (interned(name), ordered, int(number)) if ordered else (interned(name), textual, string)
            for name, ordered, number, textual, string in each
        ]

    def predicate(self) -> tuple[str, Operator, Operand]:
        usual = _USUAL.match(self.text, self.at)
        if usual is not None and (triple := self.usual(usual)) is not None:
            return triple
        if not self.take("["):
            raise self.error(f"'[' of a predicate{self.predicate_hint()}")
        attribute = self.attribute()
        self.need(",")
        operator = self.operator()
        operand: Operand = None
        if operator != "exists":
            self.need(",")
            operand = self.operand(operator)
        self.need("]")
        return attribute, operator, operand

    def usual(self, found: re.Match[str]) -> tuple[str, Operator, Operand] | None:
        """A predicate of a bare name and a plain literal, unless there is something to refuse about it."""
        attribute, written, number, string = found.groups()
        operator: Operator = written  # type: ignore[assignment]  # the pattern admits operators only
        operand = string if number is None else int(number)
        if operand_error(operator, operand):
            return None
        self.at = found.end()
        return interned(attribute), operator, operand

    def predicate_hint(self) -> str:
        """How to write what looks like a condition, `class=STOCK` or `price > 25`; empty for anything else."""
        match = _CONDITION.match(self.text, self.at)
        if match is None:
            return ""
        name, operator, value = match.groups()
        if not (_NUMBER.fullmatch(value) or _WORD.fullmatch(value)):
            value = f"'{value}'"
        return f", as in [{name},{operator},{value}]"

    def attribute(self) -> str:
        self.space()
        start = self.at
        name = self.string()
        if name is None:
            match = _BARE.match(self.text, self.at)
            if match is None:
                raise self.error("an attribute name")
            self.at, name = match.end(), match.group()
        if not name:
            raise self.error("an attribute name that is not empty", start)
        return interned(name)

    def operator(self) -> Operator:
        self.space()
        match = _OPERATOR.match(self.text, self.at)
        if match is None:
            raise self.error(f"an operator, one of {' '.join(sorted(OPERATORS))}")
        self.at = match.end()
        operator: Operator = match.group()  # type: ignore[assignment]  # the pattern admits operators only
        return operator

    def operand(self, operator: Operator) -> Operand:
        self.space()
        start = self.at
        operand: Operand
        if operator == "in":
            operand = self.list_of_values()
        else:
            operand = self.literal()
        wanted = operand_error(operator, operand)
        if wanted:
            raise self.error(f"{wanted} after {operator!r}", start)
        if operator == "contains":
            self.pieces += 1
            if self.pieces > PIECES_AT_MOST:
                raise self.too_many("'contains' predicates", PIECES_AT_MOST)
        return operand

    def list_of_values(self) -> tuple[Value, ...]:
        start = self.at
        usual = self.usual_list()
        if usual and self.values + len(usual) <= VALUES_AT_MOST:
            self.values += len(usual)
            return usual
        self.at = start
        self.need("(", "'(' of a list of values")
        values = [self.literal()]
        while self.take(","):
            values.append(self.literal())
            if self.values + len(values) > VALUES_AT_MOST:
                raise self.too_many("values in lists", VALUES_AT_MOST)
        self.need(")", "',' or ')'")
        self.values += len(values)
        return tuple(values)

    def usual_list(self) -> tuple[Value, ...]:
        """The values of a list of plain strings or of numbers, with the cursor behind it; empty if it is another."""
        values: tuple[Value, ...] = self.integers()
        if values:
            return values
        found = _NUMBERS.match(self.text, self.at)
        if found is None:
            found = _STRINGS.match(self.text, self.at)
            if found is None:
                return ()
            values = tuple(_EACH_STRING.findall(found.group()))
        else:
            written = [text.strip() for text in found.group()[1:-1].split(",")]
            values = tuple([int(text) if _INTEGER.fullmatch(text) else float(text) for text in written])
            if float("inf") in values or float("-inf") in values:
                return ()
        self.at = found.end()
        return values

    def integers(self) -> tuple[int, ...]:
        """The values of a list of integers, with the cursor behind it; empty if it is another.

        `int` reads what the rules admit, and besides only underscores and digits of other scripts.
        """
        start, end = self.at + 1, self.text.find(")", self.at)
        if end < 0 or self.text[self.at] != "(" or self.text.count(",", start, end) >= VALUES_AT_MOST:
            return ()
        body = self.text[start:end]
        if "_" in body or "'" in body or not body.isascii():
            return ()
        written = body.split(",")
        if len(max(written, key=len)) > USUAL_DIGITS:
            return ()
        try:
            values = tuple(map(int, written))
        except ValueError:
            return ()
        self.at = end + 1
        return values

    def literal(self) -> Value:
        self.space()
        string = self.string()
        if string is not None:
            return string
        word = _WORD.match(self.text, self.at)
        if word is not None:
            self.at = word.end()
            return word.group() == "true"
        return self.number()

    def number(self) -> int | float:
        match = _NUMBER.match(self.text, self.at)
        # `5x` and `1.2.3` are one wrong token, not a number with something after it.
        if match is None or _WORD_BEHIND.match(self.text, match.end()):
            raise self.error("a quoted string, a number, true or false")
        if _INTEGER.fullmatch(match.group()):
            if len(match.group()) > MAX_DIGITS:
                raise self.error(f"an integer of at most {MAX_DIGITS} digits")
            number: int | float = int(match.group())
        else:
            number = float(match.group())
            if number in (float("inf"), float("-inf")) and "inf" not in match.group():
                raise self.error("a number that a float can hold (write inf for infinity)")
        self.at = match.end()
        return number

    def string(self) -> str | None:
        """A quoted string, or None if none starts here."""
        quote = self.text[self.at : self.at + 1]
        if quote not in ("'", '"'):
            return None
        whole = _QUOTED[quote].match(self.text, self.at)
        if whole is not None and (usual := _unescaped(whole.group(1))) is not None:
            self.at = whole.end()
            return usual
        start = self.at
        parts: list[str] = []
        self.at += 1
        plain = _PLAIN[quote]
        while True:
            run = plain.match(self.text, self.at)
            if run is not None and run.group():
                parts.append(run.group())
                self.at = run.end()
            char = self.text[self.at : self.at + 1]
            if not char:
                raise self.error(f"the closing {quote} of the string that starts at column {start + 1}")
            self.at += 1
            if char == quote:
                return "".join(parts)
            parts.append(self.escape())

    def escape(self) -> str:
        char = self.text[self.at : self.at + 1]
        if char in _ESCAPES:
            self.at += 1
            return _ESCAPES[char]
        match = _CODE_POINT.match(self.text, self.at)
        if match is None or int(match.group(1), 16) > sys.maxunicode:
            raise self.error("an escape: \\\\ \\' \\\" \\n \\r \\t or \\u{hex} up to \\u{10ffff}")
        self.at = match.end()
        return chr(int(match.group(1), 16))


def _unescaped(written: str) -> str | None:
    """A string with its escapes replaced; None if they have to be read one by one."""
    if "\\" not in written:
        return written
    if "\0" in written:
        return None
    written = written.replace("\\\\", "\0")
    if written.endswith("\\") or _RARE_ESCAPE.search(written):
        return None
    for escape in "'\"nrt":
        written = written.replace("\\" + escape, _ESCAPES[escape])
    return written.replace("\0", "\\")


def format_predicate(attribute: str, operator: Operator, operand: Operand) -> str:
    """One predicate as text that `parse_triples` reads back."""
    name = attribute if _BARE.fullmatch(attribute) else _quoted(attribute)
    if operator == "exists":
        return f"[{name},exists]"
    if isinstance(operand, tuple):
        write = repr if operand and kind_of(operand[0]) == "number" else _literal
        return f"[{name},{operator},({','.join(map(write, operand))})]"
    return f"[{name},{operator},{_literal(operand)}]"


def _literal(value: Value | None) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _quoted(string: str) -> str:
    """In single quotes, with unprintable characters (control characters, lone surrogates) escaped."""
    if string.isprintable():
        return f"'{string.translate(_ESCAPED)}'" if "\\" in string or "'" in string else f"'{string}'"
    return "'" + "".join(_UNESCAPES.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in string) + "'"
