"""Secrets out of a text, by one function for all: what people see, what a judge reads, what is exported and stored.

In: text from a session. Out: the same with `[redacted <kind>]` where a key, a password or a cookie stood. Pure, linear,
and no part of any grade's inputs: what is graded is the evidence as it came.
Start with `redact`, the function; `secret_shapes`, `random_runs` and `private_keys` say what secrets look like.
"""

from grading.redaction.redact import MARGIN, MARK, VERSION, hidden, mark_at, redact, redact_json, redact_line

__all__ = ["MARGIN", "MARK", "VERSION", "hidden", "mark_at", "redact", "redact_json", "redact_line"]
