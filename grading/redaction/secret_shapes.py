"""Patterns for secrets that the detection library lacks or recognises only in full; all take linear time.

Transcripts have keys cut short, escaped and in assignments of every language, so a distinctive prefix is enough here.
The secret is a pattern's group `v`, or the whole match if it has none. `Shape.is_secret` rejects code and prose.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grading.redaction import commands, sentences
from grading.redaction.random_runs import is_random
from grading.redaction.sentences import FOREIGN
from grading.redaction.values import (
    CALL,
    DIGITS_INSIDE,
    DOTTED,
    HEX,
    LOWER_WORDS,
    PLACEHOLDER,
    QUOTE,
    REFERENCE,
    SECRET_NAME,
    TERMS,
    TEST_RESULT,
    TITLED,
    WORDS,
    looks_like_password,
)

PREFIXED = (
    # (prefixes, pattern of the characters after one of them)
    ("sk-ant-", r"[\w-]{4,}"),
    ("gho_ ghp_ ghs_ ghu_ ghr_", r"[A-Za-z0-9]{8,}"),
    ("github_pat_", r"\w{8,}"),
    ("glpat- gldt- glft- glsoat- glrt- glcbt- glimt- glptt- glagent- gloas- GR1348941", r"[\w.-]{8,}"),
    ("xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"[\w-]{8,}"),
    ("AKIA ASIA", r"[A-Z0-9]{12,}"),
    ("AIza", r"[\w-]{16,}"),
    ("ya29.", r"[\w-]{16,}"),
    ("GOCSPX-", r"[\w-]{8,}"),
    ("pypi-Ag", r"[\w-]{8,}"),
    ("rk_live_ rk_test_ sk_live_ sk_test_ whsec_", r"[A-Za-z0-9]{8,}"),
    (
        "dckr_pat_ doo_v1_ dop_v1_ shpat_ shpca_ shppa_ shpss_ lin_api_ figd_ glsa_ sntrys_ AGE-SECRET-KEY-1",
        r"[\w+/=-]{16,}",
    ),
    ("hvs. hvb. lin_oauth_", r"[\w-]{20,}"),
    ("ATATT3x", r"[\w=-]{16,}"),
    ("sq0csp- sq0atp-", r"[\w-]{8,}"),
    ("EAAA rk_live_ rubygems_ sbp_ cfut_ pscale_tkn_", r"[\w-]{26,}"),
)
WORDLIKE = (
    # as above, but the prefix may end an ordinary word, so it counts only at the start of a word
    ("gs_", r"[\w-]{26,}"),
    ("hf_", r"[A-Za-z0-9]{26,}"),
    ("npm_", r"[A-Za-z0-9]{26,}"),
    ("gsk_", r"[A-Za-z0-9]{26,}"),
    ("r8_", r"[A-Za-z0-9]{26,}"),
    ("dapi", r"[a-f0-9]{26,}"),
    ("nvapi-", r"[\w-]{26,}"),
    ("xai-", r"[A-Za-z0-9]{26,}"),
    ("pplx-", r"[A-Za-z0-9]{26,}"),
    ("tskey-", r"[\w-]{26,}"),
    ("PMAK-", r"[a-f0-9-]{26,}"),
    ("NRAK-", r"[A-Z0-9]{26,}"),
    ("lsv2_", r"[\w-]{26,}"),
    ("pul-", r"[a-f0-9]{26,}"),
    ("sgp_", r"\w{26,}"),
    ("xkeysib-", r"[\w-]{26,}"),
    ("csk-", r"[a-z0-9]{26,}"),
    ("pat-na1-", r"[a-f0-9-]{26,}"),
    ("pat-eu1-", r"[a-f0-9-]{26,}"),
    ("sk-", r"(?=[\w-]{0,60}\d)[\w-]{16,}"),
    ("SG.", r"(?=[\w-]{0,20}\d)[\w-]{16,}(?:\.[\w-]*)?"),
    ("eyJ", r"[\w-]{8,}={0,2}\.[\w-]{4,}={0,2}(?:\.[\w-]*)?"),
)

# A token cut off by the text's end; not the name of a model of Perplexity or xAI, such as pplx-70b-online.
CUT_TOKEN = re.compile(
    rf"(?:(?:{'|'.join(re.escape(each) for prefixes, _ in PREFIXED for each in prefixes.split())})(?=[\w+/=.-]{{2}})|"
    rf"(?<![A-Za-z0-9_-])(?!(?:pplx|xai)-\w+-)(?:{'|'.join(re.escape(prefix) for prefix, _ in WORDLIKE)})(?=[\w.-]*\d))"
    r"(?P<v>[\w+/=.-]{2,})…?$"
)


# Names of variables, fields and options whose values are secrets: STRONG_NAMES always, SETTING_NAMES in settings and
# JSON, WEAK_NAMES only if the value looks like a secret.
STRONG_NAMES = (
    r"api[ _-]?key|(?:secret[ _-]?)?access[ _-]?key|secret|passw(?:or)?d|passphrase|passcode|passwort|contrase[nñ]a|"
    r"auth[_-]?token|auth[_-]?key|private[_-]?key|client[_-]?key|account[_-]?key|service[_-]?key|"
    r"(?:encryption|signing|master|storage|shared|database|db)[_-]?key|pgpass|credential|(?<=db)pass|(?<=db[_-])pass|"
    r"kennwort|(?<=mot de )passe|(?<![^\W_])mdp\b|(?<![^\W_])senha|palavra[- ]passe|парол[ьяюе]м?|密码|密碼|口令|"
    r"wachtwoord|hasło|パスワード|비밀번호"
)
# Each name begins with one of these words, or is a word followed by "key".
NAME_WORDS = frozenset({"secret", "pass", "contrase", "token", "credential", "pwd", "auth", "sig", *FOREIGN, "pw"})
# A text without any of these has no such name.
NAME_LITERALS = NAME_WORDS | {"key"}
WORD_BEFORE_KEY = re.compile(
    r"(?:api|access|auth|private|client|account|service|encryption|signing|master|storage|shared|database|db)[ _-]?$"
)
SETTING_NAMES = r"token|(?<![^\W_])pwd|(?<=_)pass\b"
WEAK_NAMES = r"\bauth|(?<!think-)\bsig|signature|(?<=_)key"
# Names that are also the ends of other words: see `_begins_word`.
SHORT_NAMES = r"(?:pass|pw|clave)\d?(?![^\W\d_])"
ASSIGNED = re.compile(
    rf"(?P<name>{STRONG_NAMES}|(?P<token>{SETTING_NAMES})|(?P<weak>{WEAK_NAMES})|(?P<short>{SHORT_NAMES}))"
    rf"(?P<rest>[\w.-]{{0,40}})(?P<name_quote>{QUOTE}?)\]?(?: \[[^\]\n]{{0,24}}\])?\s{{0,3}}"
    rf"(?P<sign>=>|:=|={{1,3}}|:(?!:)|：)(?P<space>\s{{0,3}})"
)
ENCLOSED = re.compile(
    rf"<[\w:.-]{{0,30}}(?:{STRONG_NAMES}|token)(?P<rest>[\w.-]{{0,20}})>(?P<v>[^<\n]{{4,500}})(?:</|$)"
)
BARE = re.compile(r"[^\s\"'`,;&|<>(){}\[\]\\]{6,2000}(?![\w.]*[(\[])")
TO_THE_END = re.compile(r"[^\s\"'`\\]{4,2000}")
OPENING = re.compile(QUOTE)
MAX_VALUE_LENGTH = 2000
# The text between the start of a line, or an escaped line break, and a name on it: also marks of diffs, quotes, lists
# and numbering.
LINE_START = re.compile(
    r"(?:^|\n|\\n)[ \t>|+-]{0,40}(?:\d{1,6}[\t→:|])?[ \t+-]{0,40}(?:(?:export|set|env|arg|declare -x) )?[\w.-]{0,60}$"
)
# Begins with the option's name; `_is_option` looks for the dashes before it.
OPTION = (
    rf"(?:password|passwd|passphrase|token|secret|api-?key|access-?key)\s{{1,3}}{QUOTE}?(?P<v>[^\s\"'`\\]{{6,500}})"
)
DASHES = re.compile(r"(?<![\w-])--?[\w-]{0,30}$")
# "The token for the staging database is …"
PROSE = (
    r"(?:secret key|api key|access key|token|credentials?)"
    r"(?: (?:for|of|on|at) [^\n:=]{1,80}?(?: is|:| =)|(?: is| was| =|:)(?: now)?)"
    rf"\s{{1,3}}(?:\*\*)?{QUOTE}?(?=(?P<v>[^\s\"'`\\()\[\]<>{{}}]{{6,200}}))"
)

NON_SECRET_ENDING = re.compile(  # endings of names whose values describe a secret: password_length, token_url
    r"(?:hash|sha\d*|digest|[_-]?id|ids|ur[il]|path|file|name|type|len(?:gth)?|count|expir\w*|ttl|limit|usage|budget|s|"
    r"version|policy|field|column|label|hint|reset|required|enabled|manager|class|env|prefix|regex|pattern|kind|status|"
    r"index|format|mode|method|provider|source|ref|store|at|date|scope|header|helper|param\w*|ization|entication|enticator|or|"
    r"estimate\w*|total|window|rate|ratio|details|message|error|placeholder|rotation|e?mail|"
    r"\.(?:py|js|jsx|ts|tsx|md|rs|go|rb|java|html|css|json|ya?ml|toml|txt|sh|c|h|cpp))$",
    re.IGNORECASE,
)
ANGLED = re.compile(r"<[\w /.,'-]{0,60}>|\$\(")  # as <your key>
TOKEN_NAME_ENDING = re.compile(r"[_-]?(?:secret|value|key|\d{1,2})")
PASSWORDS = re.compile(r"pass|pw|contrase|kennwort|mdp|senha|парол|密|口令|wacht|hasło|パス|비밀", re.IGNORECASE)
CHINESE = re.compile("[\u3000-\u9fff\uff00-\uffef]")
SEVERAL_WORDS = re.compile(r"[A-Za-z_]+(?: [A-Za-z_]+)+\.?")
MIN_WEAK_LENGTH = 16
MIN_LETTERS_LENGTH = 20  # of a key in a sentence that has no digits


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret with its pattern. `is_secret` decides on a match and its value; None accepts all.

    `any_case`: the pattern is in lower case and matched against the lowercased text, much faster than with IGNORECASE.
    A match needs one of `prefixes` in a word of MIN_TOKEN_LENGTH, or one of the literals `needs` in the lowercased
    text; searching for these first is many times faster. `is_anchored`: the pattern begins with one of `needs`, and is
    tried only there.
    """

    kind: str
    pattern: re.Pattern[str]
    is_secret: Callable[[re.Match[str], str], bool] | None = None
    any_case: bool = False
    needs: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    is_anchored: bool = False

    def find(self, text: str, lowered: str) -> Iterator[tuple[int, int]]:
        """The spans (start, end) of secrets; `lowered` is the text in lower case, with the same length."""
        for match in self._matches(lowered if self.any_case else text, lowered):
            start, end = match.span("v" if "v" in match.groupdict() else 0)
            if text.startswith(MARK_START, start):
                continue
            if self.is_secret is None or self.is_secret(match, text[start:end]):
                yield start, end

    def _matches(self, searched: str, lowered: str) -> Iterator[re.Match[str]]:
        """The pattern's matches in `searched`; of an anchored one, for each of `needs` in turn.

        Matches that begin with different `needs` may overlap: the caller merges the spans of all shapes.
        """
        if not self.is_anchored:
            yield from self.pattern.finditer(searched)
            return
        for need in self.needs:
            previous_end = 0
            for offset in find_offsets(lowered, need):
                if offset >= previous_end and (match := self.pattern.match(searched, offset)) is not None:
                    yield match
                    previous_end = match.end()


def find_offsets(text: str, literal: str) -> Iterator[int]:
    """All offsets of a literal in a text."""
    offset = text.find(literal)
    while offset >= 0:
        yield offset
        offset = text.find(literal, offset + 1)


MARK_START = "[redacted "


def find_named_values(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """The spans (start, end) of values that are assigned to the name of a secret, as in `API_KEY=…` and `"token": "…"`.

    `lowered` is the text in lower case, with the same length.
    """
    previous_end = 0  # of the last span: names within it are part of its value
    for match in _find_assignments(lowered):
        after_sign = match.end()
        if after_sign < previous_end or NON_SECRET_ENDING.search(match["rest"]):
            continue
        if text.startswith(MARK_START, after_sign):
            continue
        # A short name, such as the `pass` of smtp_pass, must be a whole word, perhaps in the plural.
        if match["short"] and not (match["rest"] in {"", "s"} and _begins_word(text, match.start())):
            continue
        before = lowered[max(match.start() - 160, 0) : match.start()]
        quote = OPENING.match(text, after_sign)
        start, end, is_quoted, is_explicit = _locate_value(text, match, quote, before)
        value = text[start:end]
        is_code = (not is_quoted and ANGLED.match(text, start)) or (quote and "`" in quote[0] and " " in value)
        if len(value) < 4 or PLACEHOLDER.fullmatch(value) or TERMS.fullmatch(value) or is_code:  # noqa: PLR2004 - too short
            continue
        if _is_named_secret(match, value, is_explicit=is_explicit, is_quoted=is_quoted):
            previous_end = end
            yield start, end


def _find_assignments(lowered: str) -> list[re.Match[str]]:
    """The matches of ASSIGNED, in order. They may overlap.

    Each begins with one of NAME_WORDS or is a word followed by "key". The pattern is only tried at these, which is much
    faster than a search.
    """
    starts: set[int] = set()
    for word in NAME_WORDS:
        starts.update(find_offsets(lowered, word))
    for offset in find_offsets(lowered, "key"):
        before = WORD_BEFORE_KEY.search(lowered, max(offset - 16, 0), offset)
        starts.add(offset if before is None else before.start())
    matches = (ASSIGNED.match(lowered, start) for start in sorted(starts))
    return [match for match in matches if match is not None]


def _locate_value(
    text: str, match: re.Match[str], quote: re.Match[str] | None, before: str
) -> tuple[int, int, bool, bool]:
    """Where the value of an ASSIGNED match is, as (start, end, is_quoted, is_explicit); start == end without a value.

    An explicit value is marked as such by the syntax of JSON, YAML or a settings file, so it counts whatever it looks
    like. Any other may be code or prose, so it has to look like a secret. `quote` is the opening quote after the sign,
    if there is one, and `before` is the text before the name.
    """
    is_setting = LINE_START.search(before) is not None
    start = match.end()
    if quote is not None:
        start = quote.end()
        end = _closing_quote(text, quote[0], start)
        if end > start:
            is_json_field = bool(match["name_quote"].strip("`\\")) and match["sign"] in ":="
            return start, end, True, "`" not in quote[0] and (is_setting or is_json_field)
    if is_setting and _is_setting(text, match):
        without_spaces = TO_THE_END.match(text, start)
        end = start if without_spaces is None else without_spaces.end()
        is_call = text[start : start + 1] == "(" or CALL.search(text, start, end) is not None
        if not is_call and _ends_line(text, match, end):
            return start, end, False, True
    bare_value = BARE.match(text, start)
    end = start if bare_value is None else bare_value.end()
    return start, end, False, False


def _begins_word(text: str, start: int) -> bool:
    """Whether a word begins at `start`, in a sentence or within a name: in smtp_pass and smtpPass, not in bypass."""
    before = text[max(start - 1, 0) : start]
    is_escape = start > 1 and text[start - 2] == "\\" and before in "nrt"
    return is_escape or not before.isalnum() or (before.islower() and text[start].isupper())


def _closing_quote(text: str, quote: str, at: int) -> int:
    """The offset of the quote that closes the one before `at`, on the same line; -1 if there is none.

    A quote after a backslash doesn't close, unless `quote` has backslashes of its own, as in JSON within a string.
    """
    limit = min(at + MAX_VALUE_LENGTH, len(text))
    newline = text.find("\n", at, limit)
    if newline >= 0:
        limit = newline
    end = text.find(quote, at, limit)
    while end > 0 and text[end - 1] == "\\" and quote[0] != "\\":
        end = text.find(quote, end + 1, limit)
    return end


def _is_setting(text: str, match: re.Match[str]) -> bool:
    """Whether an assignment is written like a shell's NAME=value or YAML's name: value."""
    sign, space = match["sign"], match["space"]
    if sign == "=":
        return not space and text[match.start() : match.end("rest")].isupper()
    if "\n" in space:
        return False
    return sign == "：" or (sign == ":" and space != "")


def _ends_line(text: str, match: re.Match[str], end: int) -> bool:
    """Whether nothing but a comment follows the value on its line, unlike in code. True for every NAME=value."""
    if match["sign"] == "=":
        return True
    is_line_end = text[end : end + 1] in {"", "\n", "\r", "\\"} or text[end : end + 2] == " #"
    return is_line_end and text[end - 1] not in ",;({["


def _is_named_secret(match: re.Match[str], value: str, *, is_explicit: bool, is_quoted: bool) -> bool:
    """Whether the value of an ASSIGNED match is a secret. `is_explicit` and `is_quoted` as in `_locate_value`.

    The match's groups say which kind of name it has: `short`, `weak`, `token` (SETTING_NAMES), or none of these.
    """
    if not is_quoted and CHINESE.search(value) and not any(map(str.isdigit, value)):
        return False
    if match["short"]:
        return _is_short_named_secret(match, value, is_explicit=is_explicit, is_quoted=is_quoted)
    if SECRET_NAME.fullmatch(value) and not is_random(value):
        return False
    if match["weak"]:
        min_length = 2 * MIN_WEAK_LENGTH if HEX.fullmatch(value) else MIN_WEAK_LENGTH
        return len(value) >= min_length and _is_mixed(match, value)
    if match["token"]:
        return _is_token(match, value, is_explicit=is_explicit, is_quoted=is_quoted)
    if is_explicit:
        return is_quoted or not _is_dotted_name(value)
    is_password = PASSWORDS.search(match["name"]) is not None
    if is_password and is_quoted:
        is_plain_word = False
    elif is_password and value.isalpha():
        # A short word is plain, and so is a title, which may name a type. Other letters may be a password.
        is_title = value.istitle() or TITLED.fullmatch(value) or not value.isascii()
        is_plain_word = len(value) < 8 or bool(is_title)  # noqa: PLR2004
    else:
        is_plain_word = WORDS.fullmatch(value) is not None
    return is_random(value) or not (is_plain_word or REFERENCE.search(value))


def _is_short_named_secret(match: re.Match[str], value: str, *, is_explicit: bool, is_quoted: bool) -> bool:
    """Whether the value after `pass`, `pw` or `clave` is a secret.

    These may also be ordinary words, or the label of a test's result ("PASS: test_login"). In an explicit assignment
    (`pw = …`), also a value that doesn't look like a password is one, unless it is code.
    """
    is_label = match["sign"] == ":"
    if is_label and TEST_RESULT.fullmatch(value):
        return False
    if not is_explicit:
        return looks_like_password(value, min_length=6 if is_label else 4)
    if looks_like_password(value):
        return True
    is_code = REFERENCE.search(value) or SECRET_NAME.fullmatch(value) or (is_quoted and " " in value)
    return not (is_label or len(value) < 6 or is_code)  # noqa: PLR2004 - a word


def _is_token(match: re.Match[str], value: str, *, is_explicit: bool, is_quoted: bool) -> bool:
    """Whether the value of one of SETTING_NAMES is a secret. It may also be a number, a name of code or a folder."""
    if match["rest"] and not TOKEN_NAME_ENDING.fullmatch(match["rest"]):
        return False
    if is_explicit:
        is_code = SEVERAL_WORDS.fullmatch(value) if is_quoted else _is_dotted_name(value)
        is_path = match["name"] == "pwd" and REFERENCE.search(value)
        is_number = value.replace(".", "").isdigit()
        return not (is_code or is_path or is_number)
    if PASSWORDS.search(match["name"]) and looks_like_password(value):
        return True
    return len(value) >= MIN_WEAK_LENGTH and _is_mixed(match, value)


def _is_dotted_name(value: str) -> bool:
    """Whether a value is a name of code with dots (settings.TOKEN), not a key with dots."""
    return DOTTED.fullmatch(value) is not None and not is_random(value)


def _is_mixed(_: re.Match[str], value: str) -> bool:
    """Whether a value without spaces is random, or has letters and digits and is no variable, path or URL."""
    has_both = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return " " not in value and (is_random(value) or (has_both and not REFERENCE.search(value)))


def _is_stated_key(_: re.Match[str], value: str) -> bool:
    """Whether the value of a PROSE match ("the token is …") is a key, not a word or an assignment."""
    value = value.strip(".,;:!?*")
    if "=" in value.rstrip("=") or len(value) < 6 or PLACEHOLDER.fullmatch(value):  # noqa: PLR2004 - a word
        return False
    if is_random(value):
        return True
    min_length = MIN_WEAK_LENGTH if DIGITS_INSIDE.match(value) else MIN_LETTERS_LENGTH
    return len(value) >= min_length and value.isalnum() and not WORDS.fullmatch(value)


def _is_header(match: re.Match[str], value: str) -> bool:
    """Whether `value` is that of an Authorization header, not the next word of a sentence or of code.

    Letters alone may be a word or a name. After a scheme ("Bearer …"), a long run of them counts as a value even so.
    """
    value = value.rstrip(",;.)")
    if is_random(value):
        return True
    if "(" in value or value.startswith("$") or LOWER_WORDS.fullmatch(value) or PLACEHOLDER.fullmatch(value):
        return False  # code or prose
    is_long_after_scheme = match["scheme"] is not None and len(value) >= MIN_WEAK_LENGTH and "." not in value
    return is_long_after_scheme or not WORDS.fullmatch(value)


def _is_option(match: re.Match[str], value: str) -> bool:
    start = match.start()
    is_option = DASHES.search(match.string, max(start - 40, 0), start) is not None
    return is_option and not (value.startswith("-") or REFERENCE.search(value) or WORDS.fullmatch(value))


def _is_enclosed(match: re.Match[str], value: str) -> bool:
    return not (NON_SECRET_ENDING.search(match["rest"]) or PLACEHOLDER.fullmatch(value) or "{" in value)


def _is_cookie(_: re.Match[str], value: str) -> bool:
    return "=" in value and not REFERENCE.search(value)


def _is_password(_: re.Match[str], value: str) -> bool:
    is_name = value.lower() in {"password", "passwd", "pass", "pw"}
    return not (is_name or value.rstrip(".,;)").isdigit() or value.startswith("%") or REFERENCE.search(value))


HEADER_VALUE = r"(?P<v>[^\s\"'\\]{8,4000})"
# (kind, literals that the pattern begins with, pattern, function that decides), for a text in lower case.
LOWERCASE_SHAPES = (
    ("signature", "sig= x-amz-signature= x-goog-signature=", r"(?<=[?&])[a-z-]{3,16}=(?P<v>[\w%+/=.-]{16,})", None),
    ("password", "login", r"login\s{1,8}\S{1,80}\s{1,8}password\s{1,8}(?P<v>\S{4,200})", None),
    # what a first start prints
    ("password", "user", r"user \S{1,80}, password (?P<v>\S{8,200})", _is_password),
    ("password", "identified password", r"(?:identified by|password)\s{1,3}'(?P<v>[^'\n]{4,200})'", None),
    (
        "credentials",
        "authorization",
        rf"authorization{QUOTE}?\s{{0,3}}[:=,]\s{{0,3}}{QUOTE}?(?P<scheme>[a-z][\w-]{{2,20}} {{1,3}})?{HEADER_VALUE}",
        _is_header,
    ),
    ("credentials", "bearer", r"bearer\s{1,3}(?P<v>[\w.~+/=-]{12,4000})", _is_mixed),
    ("credentials", "auth", rf"(?<=[\"'`])auth{QUOTE}\s{{0,3}}:\s{{0,3}}{QUOTE}(?P<v>[\w+/=]{{8,}})", None),
    ("cookies", "cookie", rf"cookie{QUOTE}?\s{{0,3}}:\s{{0,3}}{QUOTE}?(?P<v>[^\n\"'\\]{{8,4000}})", _is_cookie),
    (
        "cookies",
        "-b --cookie",
        r"(?<![\w-])(?:-b|--cookie)[ =][\"'](?P<v>[^\"'\n]{8,4000})(?:[\"']|$)",
        _is_cookie,
    ),
    ("secret", "password passwd passphrase token secret api access", OPTION, _is_option),
    ("secret", "secret api access token credential", PROSE, _is_stated_key),
    ("secret", " ".join(sentences.PASSWORD_WORDS), sentences.STATED_PASSWORD, sentences.is_stated_password),
    ("secret", " ".join(sentences.PASSWORD_WORDS), sentences.ADJACENT_PASSWORD, sentences.is_adjacent_password),
)
# The same, for the text in its own case.
CASED_SHAPES = (
    ("webhook", "discord", r"discord(?:app)?\.com/api/webhooks/\d{5,25}/(?P<v>[\w-]{8,})", None),
    ("webhook", "hooks.slack", r"hooks\.slack\.com/(?:services|triggers|workflows)/(?P<v>[\w/]{8,})", None),
    ("password", "://", r"://[^\s/:@\"']{0,80}:(?P<v>[^\s/\"']{1,200})@", _is_password),
    # cut off
    ("password", "://", r"://[^\s/:@\"']{0,80}:(?P<v>[^\s/\"'`@…]{1,200})…?$", _is_password),
    ("password", "://", r"://(?P<v>[\w-]{20,200})(?:@|…?$)", _is_mixed),
    (
        "password",
        "-u --user --proxy-user",
        rf"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{QUOTE}?[^\s:\"'/]{{1,80}}:(?P<v>[^\s\"'/][^\s\"']{{3,200}})",
        _is_password,
    ),
    ("password", "login", commands.REGISTRY_LOGIN, commands.is_registry),
    ("secret", "login", commands.LOGIN, commands.is_argument),
    ("secret", "wandb.login", commands.PYTHON_LOGIN, commands.is_argument),
    ("password", "htpasswd", commands.HTPASSWD, commands.is_argument),
    ("secret", "--from-literal", commands.LITERAL, commands.is_literal),
    ("secret", " ".join(sentences.PIN_WORDS), sentences.STATED_PIN, sentences.is_pin),
    *(("password", need, pattern, commands.is_argument) for need, pattern in commands.COMMANDS),
)
# The same, but the literals may be anywhere in the text.
UNANCHORED_SHAPES = (
    ("bot token", ":", r":(?<=\d{8}:)[\w-]{35}(?![\w-])", None),
    ("password", ":", commands.PGPASS, commands.is_pgpass),
    ("password", commands.PIPED_LITERALS, commands.PIPED, commands.is_argument),
    ("password", commands.HASH_LITERALS, commands.HASHES, None),
    ("password", "pbkdf2 argon2 scrypt bcrypt md5$ sha1$ sha256$ sha512$", commands.NAMED_HASH, None),
    ("password", "{s {crypt {md5 {argon2 {bcrypt {pbkdf2", commands.LDAP_HASH, None),
)

# Secrets with a prefix, and all others.
TOKENS = (
    *(
        Shape(
            "token",
            re.compile(f"(?:{'|'.join(map(re.escape, prefixes.split()))}){body}"),
            prefixes=(*prefixes.split(),),
        )
        for prefixes, body in PREFIXED
    ),
    # Only at the start of a word, also after an escaped line break, whose n isn't part of the word. The lookbehind is
    # after the prefix because searching for a literal first is many times faster.
    *(
        Shape(
            "token",
            re.compile(rf"{prefix}(?:(?<=(?<![A-Za-z0-9_-]){prefix})|(?<=\\[nrt]{prefix})){body}"),
            prefixes=(literal,),
        )
        for literal, prefix, body in ((prefix, re.escape(prefix), body) for prefix, body in WORDLIKE)
    ),
)
OTHERS = (
    *(
        Shape(kind, re.compile(pattern), is_secret, needs=frozenset(needs.split()))
        for kind, needs, pattern, is_secret in UNANCHORED_SHAPES
    ),
    Shape("secret", ENCLOSED, _is_enclosed, any_case=True, needs=NAME_LITERALS),
    *(
        Shape(
            kind,
            re.compile(pattern),
            is_secret,
            any_case=any_case,
            needs=frozenset(needs.split()),
            is_anchored=True,
        )
        for any_case, table in ((False, CASED_SHAPES), (True, LOWERCASE_SHAPES))
        for kind, needs, pattern, is_secret in table
    ),
)
# All tokens with a prefix are at least this long; they have no spaces.
MIN_TOKEN_LENGTH = 11
NEEDED = NAME_LITERALS.union(*(shape.needs for shape in OTHERS))
