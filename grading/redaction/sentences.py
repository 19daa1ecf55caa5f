"""Patterns for passwords and PINs in sentences and after labels in several languages: "my pw: …", "mi clave es …".

They are written for text in lower case, and each begins with one of PASSWORD_WORDS or PIN_WORDS.
"""

import re

from grading.redaction.values import QUOTE, TEST_RESULT, looks_like_password

# The beginnings of words for "password" in other languages.
FOREIGN = frozenset(
    {
        "kennwort",
        "mdp",
        "clave",
        "senha",
        "palavra",
        "парол",
        "密码",
        "密碼",
        "口令",
        "wachtwoord",
        "hasło",
        "パスワード",
        "비밀번호",
    }
)
PASSWORD_WORDS = frozenset({"pass", "pw", "contrase", *FOREIGN})
PIN_WORDS = frozenset({"pin", "пин"})

_WORD = (
    r"(?:(?:pass[ -]?word|passwd|passphrase|passcode|passwort|(?<=mot de )passe|contrase[nñ]a|kennwort|wachtwoord|"
    r"hasło|palavra[- ]passe|(?:(?<![\w-])|(?<=\\[nrt]))(?:pass|pwd?|mdp|clave|senha)|парол[ьяюе]м?)\d?(?!\w)|"
    r"密码|密碼|口令|パスワード|비밀번호)"
)
_ABOUT = (
    r"(?: (?:for|of|on|at|to|für|von|vom|zum?|zur|der|des|pour|de|du|para|do|da|del|от|для|к|на) [^\n:=：—]{1,80}?)?"
)
_IS = r"is|was|are|ist|war|lautet|est|es|é|è|era|это|c'est|has been|would be"
_SET = r"(?:(?:set|changed|reset|updated|now|also|still|jetzt|maintenant|ahora|agora|теперь|simply|just|to|le) )"
# Between the word and the value: "is", "is now set to", ":", "—"; in Chinese without a space.
_JOINT = (
    rf"(?:(?:'s| (?:{_IS}))\*{{0,2}}(?: ?[:：])? {_SET}{{0,3}}\s{{0,3}}|"
    r"\s(?:-|\|)\s{1,3}|\s?(?:[:：=—–→]|->|=>|是|为|為)[:：]?\*{0,2}\s{0,3})"
)
_BEFORE_VALUE = rf"(?:\*\*)?(?:{QUOTE}|[„“”«‘’「])?"
_REST = r"[^\s\"'`\\<>“”„«»‘’\u3000-\u9fff\uff00-\uffef]"
STATED_PASSWORD = rf"{_WORD}{_ABOUT}{_JOINT}{_BEFORE_VALUE}(?P<v>{_REST}{{4,200}})"
# "log in as bob with password …", "the password for bob, …", "set the password to …"
ADJACENT_PASSWORD = rf"(?!pass[ ,]|clave){_WORD}(?:,| (?:set )?(?:to|auf)|) {_BEFORE_VALUE}(?P<v>{_REST}{{6,200}})"
# Four to eight digits that aren't a version, a date, a chip's pin or a count.
STATED_PIN = (
    r"(?:[Pp][Ii][Nn]|[Пп][Ии][Нн])(?i:(?:[ -]?(?:code|number|nummer|код)|码)?(?![^\W_])"
    rf"{QUOTE}?(?:{_ABOUT}{_JOINT}|(?P<bare> )){_BEFORE_VALUE}(?P<v>\d{{4,8}})(?![\w%:-]|\.\d))"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_UNIT = re.compile(
    r" (?:char|bit|byte|digit|letter|symbol|times|days|hours|minutes|seconds|attempts|zeichen|caract|знак|симв)"
)


def is_stated_password(match: re.Match[str], value: str) -> bool:
    """Whether the value of a STATED_PASSWORD match is a password: also six digits or more, if no unit follows."""
    digits = value.rstrip(".,;:!?)")
    if digits.isdigit():
        return len(digits) >= 6 and not _UNIT.match(match.string, match.end())  # noqa: PLR2004 - fewer count something
    if match.string[match.start() - 1 : match.start()] == "/":  # user/password: bob/…
        value = value.partition("/")[2] or value
    is_short = match[0].startswith(("pass ", "pass:", "pw"))
    if match[0].startswith("pass:") and TEST_RESULT.fullmatch(value):
        return False
    return looks_like_password(value, min_length=6 if is_short else 4)


def is_adjacent_password(_: re.Match[str], value: str) -> bool:
    """Whether the word after "password" is its value although nothing states so: not if it is a plain word or code."""
    return "(" not in value and not _ASSIGNMENT.match(value) and looks_like_password(value, min_length=6)


def is_pin(match: re.Match[str], _: str) -> bool:
    """Whether "pin" begins a word in a STATED_PIN match; without "is" or a colon it must be written as PIN."""
    start, text = match.start(), match.string
    before = text[max(start - 1, 0) : start]
    is_escape = start > 1 and text[start - 2] == "\\"  # the letter before belongs to an escape, as in \npin
    begins = is_escape or not before.isalpha() or (text[start].isupper() and before.islower())
    return begins and (match["bare"] is None or text.startswith("PIN", start))
