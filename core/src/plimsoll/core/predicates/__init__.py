"""Predicates and subscriptions as comparable values.

`parse` reads `[class,=,'STOCK'],[high,>,25.0]`; `str` prints it back in canonical form. Subscriptions are immutable,
hashable and equal exactly when they select the same publications; `matches` and `covers` are exact for every
operator. docs/matching.md defines each operator on each kind of value.
"""

from plimsoll.core.predicates.canonical_form import Predicate
from plimsoll.core.predicates.constraints import Exactly, Interval, OneOf, Operand, Operator, Present, Text, Value
from plimsoll.core.predicates.subscription import Attributes, Subscription, Unsatisfiable, conjunction, parse
from plimsoll.core.predicates.syntax import ParseError

__all__ = [
    "Attributes",
    "Exactly",
    "Interval",
    "OneOf",
    "Operand",
    "Operator",
    "ParseError",
    "Predicate",
    "Present",
    "Subscription",
    "Text",
    "Unsatisfiable",
    "Value",
    "conjunction",
    "parse",
]
