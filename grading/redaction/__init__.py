"""Redacts secrets in text: in pages, judge prompts, exports and stored rows, always by the same function.

In: text from a session. Out: the text with `[redacted <kind>]` in place of keys, passwords and cookies. Pure and
linear in the text's length. It doesn't affect grades: those are computed from the original evidence.
Start with `redact`; `secret_shapes`, `random_runs` and `private_keys` define what secrets look like.
"""

from grading.redaction.redact import (
    MARGIN,
    MARK,
    VERSION,
    find_secrets,
    mark_at,
    redact,
    redact_json,
    redact_line,
    redact_slice,
)
