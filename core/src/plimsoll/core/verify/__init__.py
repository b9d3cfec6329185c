"""The laws I1 to I8, checked over a journal of what applications and brokers saw.

An audit takes observations, in order from each writer and in any order between writers, and returns one verdict. It
derives what each subscriber should have received from the definition of the operators in `oracle`, and shares no code
with the predicates and indexes under test. Cases that it cannot decide count as uncertain; it never guesses in favour
of the product. The same package judges a simulated run, a test with real processes and the demo.
"""

from plimsoll.core.verify.audit import LawAudit, audit_journal
from plimsoll.core.verify.observations import Observation, decode_line, encode_line
from plimsoll.core.verify.verdict import AuditVerdict, LawViolation

__all__ = ["AuditVerdict", "LawAudit", "LawViolation", "Observation", "audit_journal", "decode_line", "encode_line"]
