"""Distinguishes passwords from what else may be in their place: code, variables, placeholders and words."""

import re

from grading.redaction.random_runs import is_random

QUOTE = r"(?:\\{0,3}[\"'`])"
PLACEHOLDER = re.compile(  # all of a variable, template, placeholder, call or type in a value's place
    r"\$\w+|\$?\{.*\}+|\$\(.*\)|<[\w /.,'-]{0,60}>|%\(\w+\)s|%\w+%|%s|\[redacted .*|[*x•.…]+|https?://\S*|-+|\w+\(.*\),?|"
    r"(?:replace|insert|example|placeholder|redacted|dummy|fake)[\w .-]*|"
    r"[A-Z][A-Z0-9_]*_(?:TOKEN|KEY|SECRET|PASSWORD|PASS)|"
    r"(?:your|my|the|some)(?:[ _-][a-z]+)+|an?(?: [a-z]+)+|\s.*|"
    r"(?:str|string|float|int|integer|number|bool|boolean|bytes|any|none|null|undefined|"
    r"nil|true|false|unknown|optional|required|secret|token|password|secretstr|object|read|write|void|char|text|env|"
    r"changed|missing|invalid|valid|expired|not|no|yes|on|off|ok|set|unset|redacted|hidden|empty|void|default|value)"
    r"(?:\[[\w, |]*\])?\??[,;]?",
    re.IGNORECASE,
)
REFERENCE = re.compile(  # the beginning of one, for values whose end is uncertain; a path, a URL
    r"^(?:[,;.)\s]|\$|%\(|%\w+%$|\{|<|\*+$|x+$|\.+$|\[redacted|https?://|(?:[~.]{0,2}/)?[\w.-]*[a-z](?:/[\w.-]+)+$)|\$\{|\{\{",
    re.IGNORECASE,
)
WORD = r"(?=[A-Za-z]{0,4}[aeiouAEIOU])"
WORDS = re.compile(  # words, alone or as names of code are made of them; numbers, line:column
    rf"{WORD}[A-Za-z]?[a-z]{{2,}}(?:[-'/_.]{WORD}[A-Z]?[a-z]{{2,}}|{WORD}[A-Z][a-z]{{2,}}|[-_.]?[0-9]{{1,2}}(?![0-9A-Za-z]))*"
    r"[?.!:,;]*|[A-Z]+(?:_[A-Z]+)*[?.!:,;]*|[\d.,:_-]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Z]?[a-z]{1,2}"
)
LOWER_WORDS = re.compile(r"[A-Z]?[^\W\d_A-Z]+(?:[-'’/][A-Z]?[^\W\d_A-Z]+)*$")
DIGITS_INSIDE = re.compile(r"(?=\w*[a-zA-Z])\w*\d\w*$")
CALL, HEX = re.compile(r"\w\(|=>|::|<\w"), re.compile(r"[0-9a-f#]+")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
# Technical terms with digits, as texts about passwords have them.
TERMS = re.compile(
    r"(?:sha|md|utf|base|ascii|latin|argon|bcrypt|pbkdf|oauth|http|ipv|iso|rfc|mod|aes|rsa|python)"
    r"-?\d{1,5}(?:[-_/.]?(?:id|i|d|s|fa|sha|cbc|gcm|bit)?[-_]?\d{0,5})|\d{1,3}(?:fa|st|nd|rd|th|x|px|em|rem|ms|s|m|h|d|kb|mb|gb|k|b|"
    r"bit|bits|chars?)|i18n|l10n|a11y|2fa|mfa",
    re.IGNORECASE,
)
# Names of secrets, or of code that handles them: password_reset_by_code, AdminPasswordChangeForm.
SECRET_NAME = re.compile(
    r"[A-Za-z_-]*(?:passw|passphrase|secret|token|credential|api_?key)[A-Za-z_-]*\d?", re.IGNORECASE
)
CODE = re.compile(r"[\w.]+[\[(]|.*(?:=>|::)")  # a call, an item
TEST_RESULT = re.compile(  # PASS: test_login
    r"[\w-]*test[\w./:-]*|[A-Za-z]\w*(?:_[A-Za-z]+)+\d?|[A-Za-z][\w.-]*(?:/[\w.-]+)+", re.IGNORECASE
)
SETTING = re.compile(  # an option, an assignment
    r"--?[a-z\[\]][a-z\[\]-]*(?:[=,].*)?$|-[A-Z][a-z]?(?:,.*)?$|[a-z_]+[A-Z]?=[a-z]*$"
)
# Names separated by slashes or bars: a path, alternatives.
PATH_OR_CHOICES = re.compile(r"(?:[a-z]{2,}|[A-Z]{2,}|[A-Z]?[a-z]+)?\d{0,3}(?:[/|][\w.-]+)+(?::\d+)*")
TITLED = re.compile(r"(?:[A-Z][a-z]{2,}){2,}")


def looks_like_password(value: str, *, min_length: int = 4) -> bool:
    """Whether a value in a password's place is one: it has digits or signs among its letters.

    Words of any language aren't, and neither are variables, calls, paths and names of algorithms.
    """
    value = value.strip(".,;:!?*)]}»“”’。，；！？、")
    if len(value) < min_length or PLACEHOLDER.fullmatch(value) or TERMS.fullmatch(value) or CODE.match(value):
        return False
    if SETTING.match(value) or SECRET_NAME.fullmatch(value) or PATH_OR_CHOICES.fullmatch(value):
        return False
    if is_random(value):
        return True
    if REFERENCE.search(value) or "://" in value:
        return False
    if not value.isascii():
        return any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if DIGITS_INSIDE.match(value):
        return True
    return not (WORDS.fullmatch(value) or LOWER_WORDS.match(value))
