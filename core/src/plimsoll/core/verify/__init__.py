"""The laws I1 to I8, checked over a journal of what applications and brokers saw.

An audit takes observations in any order between their writers and in order within each of them, and gives one
verdict. It decides for itself what each subscriber should have had: by the definition of the operators in `oracle`,
sharing no code with the predicates and indexes under test. What it cannot decide it counts as uncertain; it never
guesses in favour of the product. The same module judges a simulated run, a test with real processes and the demo.
"""

from plimsoll.core.verify.audit import Audit, audit
from plimsoll.core.verify.observations import Observation, decode_line, encode_line
from plimsoll.core.verify.verdict import Verdict, Violation

__all__ = ["Audit", "Observation", "Verdict", "Violation", "audit", "decode_line", "encode_line"]
