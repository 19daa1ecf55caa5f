"""What secrets look like that the detection library lacks, or knows only whole: a table of linear, bounded patterns.

A transcript shows keys cut short, escaped and in assignments of every language, so a distinctive prefix is enough here.
Where a pattern has a group `v`, that is the secret; else all of it is. `Shape.holds` tells code and prose from values.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grading.redaction import commands, sentences
from grading.redaction.random_runs import is_drawn
from grading.redaction.sentences import FOREIGN
from grading.redaction.values import (
    CALL,
    DIGITS_INSIDE,
    DOTTED,
    HEX,
    HOLDER,
    LOWER_WORDS,
    NAME_OF_ONE,
    QUOTE,
    REFERENCE,
    TERMS,
    TEST_RESULT,
    TITLED,
    WORDS,
    looks_given,
)

PREFIXED = (
    # one of these prefixes, then at least this many characters of this class
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
    ("hvs. hvb.", r"[\w-]{20,}"),
    ("ATATT3x", r"[\w=-]{16,}"),
    ("sq0csp- sq0atp-", r"[\w-]{8,}"),
    ("EAAA rk_live_ rubygems_ sbp_ cfut_ pscale_tkn_", r"[\w-]{26,}"),
)
WORDED = (
    # as above, where the prefix is no more than a word: only where a word starts
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
    ("sk-", r"(?=[\w-]{0,60}\d)[\w-]{16,}"),
    ("SG.", r"(?=[\w-]{0,20}\d)[\w-]{16,}(?:\.[\w-]*)?"),
    ("eyJ", r"[\w-]{8,}={0,2}\.[\w-]{4,}={0,2}(?:\.[\w-]*)?"),
)

# A token whose end was cut off with the text; not the name of a model of Perplexity or xAI, such as pplx-70b-online.
CUT_TOKEN = re.compile(
    rf"(?:(?:{'|'.join(re.escape(each) for prefixes, _ in PREFIXED for each in prefixes.split())})(?=[\w+/=.-]{{2}})|"
    rf"(?<![A-Za-z0-9_-])(?!(?:pplx|xai)-\w+-)(?:{'|'.join(re.escape(prefix) for prefix, _ in WORDED)})(?=[\w.-]*\d))"
    r"(?P<v>[\w+/=.-]{2,})…?$"
)


# The names of variables, fields and options whose values are secrets. Those of the second kind are always, where a
# file of settings or JSON gives them; the third kind is often something else.
STRONG = (
    r"api[ _-]?key|(?:secret[ _-]?)?access[ _-]?key|secret|passw(?:or)?d|passphrase|passcode|passwort|contrase[nñ]a|"
    r"auth[_-]?token|auth[_-]?key|private[_-]?key|client[_-]?key|account[_-]?key|service[_-]?key|"
    r"(?:encryption|signing|master|storage|shared|database|db)[_-]?key|pgpass|credential|(?<=db)pass|(?<=db[_-])pass|"
    r"kennwort|(?<=mot de )passe|(?<![^\W_])mdp\b|(?<![^\W_])senha|palavra[- ]passe|парол[ьяюе]м?|密码|密碼|口令|"
    r"wachtwoord|hasło|パスワード|비밀번호"
)
# Each name begins with one of these words, or with a word and "key".
NAME_WORDS = frozenset({"secret", "pass", "contrase", "token", "credential", "pwd", "auth", "sig", *FOREIGN, "pw"})
# A text without any of these has none of them.
NAME_NEEDS = NAME_WORDS | {"key"}
KEY_OF = re.compile(
    r"(?:api|access|auth|private|client|account|service|encryption|signing|master|storage|shared|database|db)[ _-]?$"
)
GIVEN = r"token|(?<![^\W_])pwd|(?<=_)pass\b"
WEAK = r"\bauth|(?<!think-)\bsig|signature|(?<=_)key"
# Also the ends of other words: see `_begins_word`.
SOFT = r"(?:pass|pw|clave)\d?(?![^\W\d_])"
ASSIGNED = re.compile(
    rf"(?P<name>{STRONG}|(?P<given>{GIVEN})|(?P<weak>{WEAK})|(?P<soft>{SOFT}))(?P<rest>[\w.-]{{0,40}})"
    rf"(?P<key>{QUOTE}?)\]?(?: \[[^\]\n]{{0,24}}\])?\s{{0,3}}(?P<sign>=>|:=|={{1,3}}|:(?!:)|：)(?P<space>\s{{0,3}})"
)
ENCLOSED = re.compile(rf"<[\w:.-]{{0,30}}(?:{STRONG}|token)(?P<rest>[\w.-]{{0,20}})>(?P<v>[^<\n]{{4,500}})(?:</|$)")
BARE = re.compile(r"[^\s\"'`,;&|<>(){}\[\]\\]{6,2000}(?![\w.]*[(\[])")
TO_THE_END = re.compile(r"[^\s\"'`\\]{4,2000}")
OPENING = re.compile(QUOTE)
LONGEST_VALUE = 2000
# What stands before a name at the start of a line, the marks of diffs, quotes, lists and numbering among it; a line
# that was written as an escape begins after it.
LINE_START = re.compile(
    r"(?:^|\n|\\n)[ \t>|+-]{0,40}(?:\d{1,6}[\t→:|])?[ \t+-]{0,40}(?:(?:export|set|env|arg|declare -x) )?[\w.-]{0,60}$"
)
# Each begins with its word; an option's dashes are looked back for.
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

ABOUT = re.compile(  # what a name's ending says of a value that is about a secret and not one
    r"(?:hash|sha\d*|digest|[_-]?id|ids|ur[il]|path|file|name|type|len(?:gth)?|count|expir\w*|ttl|limit|usage|budget|s|"
    r"version|policy|field|column|label|hint|reset|required|enabled|manager|class|env|prefix|regex|pattern|kind|status|"
    r"index|format|mode|method|provider|source|ref|store|at|date|scope|header|helper|param\w*|ization|entication|enticator|or|"
    r"estimate\w*|total|window|rate|ratio|details|message|error|placeholder|rotation|e?mail|"
    r"\.(?:py|js|jsx|ts|tsx|md|rs|go|rb|java|html|css|json|ya?ml|toml|txt|sh|c|h|cpp))$",
    re.IGNORECASE,
)
ANGLED = re.compile(r"<[\w /.,'-]{0,60}>|\$\(")  # as <your key>
TOKEN_VALUE = re.compile(r"[_-]?(?:secret|value|key|\d{1,2})")
PASSWORDS = re.compile(r"pass|pw|contrase|kennwort|mdp|senha|парол|密|口令|wacht|hasło|パス|비밀", re.IGNORECASE)
CHINESE = re.compile("[\u3000-\u9fff\uff00-\uffef]")
SEVERAL_WORDS = re.compile(r"[A-Za-z_]+(?: [A-Za-z_]+)+\.?")
WEAK_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret. `holds` decides, from the match and the value, whether it is one.

    `any_case`: the pattern is written in lower case and is for a text in lower case (much faster than IGNORECASE). A
    text that has none of its words has none of it, and looking for words is many times faster than for patterns:
    `prefixes` are looked for in its LONG words, or else `needs` in the text in lower case. Where `is_anchored`, the
    pattern begins with one of them, and is tried only there.
    """

    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[re.Match[str], str], bool] | None = None
    any_case: bool = False
    needs: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    is_anchored: bool = False

    def find(self, text: str, lowered: str) -> Iterator[tuple[int, int]]:
        """Where the secrets are, as (start, end); `lowered` is the text in lower case, of the same length."""
        for match in self._matches(lowered if self.any_case else text, lowered):
            start, end = match.span("v" if "v" in match.groupdict() else 0)
            is_done = text.startswith(DONE, start)
            if not is_done and (self.holds is None or self.holds(match, text[start:end])):
                yield start, end

    def _matches(self, searched: str, lowered: str) -> Iterator[re.Match[str]]:
        if not self.is_anchored:
            yield from self.pattern.finditer(searched)
            return
        for need in self.needs:
            done = 0
            for at in places(lowered, need):
                if at >= done and (match := self.pattern.match(searched, at)) is not None:
                    yield match
                    done = match.end()


def places(text: str, word: str) -> Iterator[int]:
    """Where a word stands in a text."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


DONE = "[redacted "


def named(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where the values stand that a name says are secrets, as (start, end).

    JSON, YAML and files of settings say what is a value: there it is taken whatever it looks like. Elsewhere it may be
    code or prose, and has to look like a value.
    """
    done = 0
    for match in _assignments(lowered):
        at = match.end()
        if at < done or ABOUT.search(match["rest"]) or text.startswith(DONE, at):
            continue
        if match["soft"] and not (match["rest"] in {"", "s"} and _begins_word(text, match.start())):
            continue
        before = lowered[max(match.start() - 160, 0) : match.start()]
        is_setting = LINE_START.search(before) is not None
        quote = OPENING.match(text, at)
        start, end = at, -1
        if quote is not None:
            start, end = quote.end(), _closing(text, quote[0], quote.end())
        is_quoted = end > start
        is_given = False
        if quote is not None and is_quoted:
            is_given = "`" not in quote[0] and (
                is_setting or (bool(match["key"].strip("`\\")) and match["sign"] in ":=")
            )
        elif is_setting and _is_setting(text, match):
            found = TO_THE_END.match(text, start)
            end = start if found is None else found.end()
            is_given = text[start] != "(" and not CALL.search(text, start, end) and _is_all(text, match, end)
        if not is_quoted and not is_given:
            found = BARE.match(text, start)
            end = start if found is None else found.end()
        value = text[start:end]
        is_code = (not is_quoted and ANGLED.match(text, start)) or (quote and "`" in quote[0] and " " in value)
        if len(value) < 4 or HOLDER.fullmatch(value) or TERMS.fullmatch(value) or is_code:  # noqa: PLR2004 - too short
            continue
        if _is_taken(match, value, is_given=is_given, is_quoted=is_quoted):
            done = end
            yield start, end


def _assignments(lowered: str) -> list[re.Match[str]]:
    """What ASSIGNED matches, in order: tried only where one of its words stands, which is much faster."""
    starts = {at for word in NAME_WORDS for at in places(lowered, word)}
    for at in places(lowered, "key"):
        before = KEY_OF.search(lowered, max(at - 16, 0), at)
        starts.add(at if before is None else before.start())
    found = (ASSIGNED.match(lowered, start) for start in sorted(starts))
    return [match for match in found if match is not None]


def _begins_word(text: str, start: int) -> bool:
    """Whether a word begins there, in a sentence or in a name: smtp_pass, smtpPass; not bypass."""
    before = text[max(start - 1, 0) : start]
    is_escape = start > 1 and text[start - 2] == "\\" and before in "nrt"
    return is_escape or not before.isalnum() or (before.islower() and text[start].isupper())


def _closing(text: str, quote: str, at: int) -> int:
    """Where the quote closes that opened before `at`, on the same line; -1 where it does not."""
    limit = min(at + LONGEST_VALUE, len(text))
    newline = text.find("\n", at, limit)
    limit = limit if newline < 0 else newline
    end = text.find(quote, at, limit)
    while end > 0 and text[end - 1] == "\\" and quote[0] != "\\":  # an escaped quote, a part of the value
        end = text.find(quote, end + 1, limit)
    return end


def _is_setting(text: str, match: re.Match[str]) -> bool:
    """Whether it is written as NAME=value, which a shell takes, or as name: value, which YAML takes."""
    if match["sign"] == "=":
        return not match["space"] and text[match.start() : match.end("rest")].isupper()
    return match["sign"] in ":：" and (match["sign"] == "：" or match["space"] != "") and "\n" not in match["space"]


def _is_all(text: str, match: re.Match[str], end: int) -> bool:
    """Whether nothing follows on the line but a comment, which in code it would; a shell may have a command there."""
    if match["sign"] == "=":
        return True
    return text[end - 1] not in ",;({[" and (
        text[end : end + 1] in {"", "\n", "\r", "\\"} or text[end : end + 2] == " #"
    )


def _is_taken(match: re.Match[str], value: str, *, is_given: bool, is_quoted: bool) -> bool:
    if not is_quoted and CHINESE.search(value) and not any(map(str.isdigit, value)):
        return False
    if match["soft"]:
        return _is_soft_taken(match, value, is_given=is_given, is_quoted=is_quoted)
    if NAME_OF_ONE.fullmatch(value) and not is_drawn(value):
        return False
    if match["weak"]:
        return len(value) >= (2 * WEAK_LENGTH if HEX.fullmatch(value) else WEAK_LENGTH) and _is_mixed(match, value)
    if match["given"]:
        return _is_token_taken(match, value, is_given=is_given, is_quoted=is_quoted)
    if is_given:
        return is_quoted or not DOTTED.fullmatch(value)
    if is_drawn(value):
        return True
    is_names = WORDS.fullmatch(value) is not None
    if PASSWORDS.search(match["name"]):
        is_title = value.istitle() or TITLED.fullmatch(value) or not value.isascii()
        is_word = len(value) < 8 or is_title  # noqa: PLR2004 - types, placeholders
        is_names = not is_quoted and bool(is_word if value.isalpha() else is_names)
    return not (REFERENCE.search(value) or is_names)


def _is_soft_taken(match: re.Match[str], value: str, *, is_given: bool, is_quoted: bool) -> bool:
    """Of `pass` and `pw`, which also say that a test passed."""
    is_label = match["sign"] == ":"
    if is_label and TEST_RESULT.fullmatch(value):
        return False
    if not is_given:
        return looks_given(value, least=6 if is_label else 4)
    is_code = REFERENCE.search(value) or NAME_OF_ONE.fullmatch(value) or (is_quoted and " " in value)
    return looks_given(value) or not (is_label or len(value) < 6 or is_code)  # noqa: PLR2004 - a word


def _is_token_taken(match: re.Match[str], value: str, *, is_given: bool, is_quoted: bool) -> bool:
    if match["rest"] and not TOKEN_VALUE.fullmatch(match["rest"]):
        return False
    if is_given:
        is_code = (is_quoted and SEVERAL_WORDS.fullmatch(value)) or (not is_quoted and DOTTED.fullmatch(value))
        is_path = match["name"] == "pwd" and REFERENCE.search(value)
        return not (is_code or is_path or value.replace(".", "").isdigit())
    is_password = PASSWORDS.search(match["name"]) is not None
    return (is_password and looks_given(value)) or (len(value) >= WEAK_LENGTH and _is_mixed(match, value))


def _is_mixed(_: re.Match[str], value: str) -> bool:
    """Letters and digits, and neither a reference nor words."""
    has_both = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return " " not in value and (is_drawn(value) or (has_both and not REFERENCE.search(value)))


def _is_said(_: re.Match[str], value: str) -> bool:
    """Of what is said to be a key or a token: a word is none, and an assignment is told elsewhere."""
    value = value.strip(".,;:!?*")
    has_digits = DIGITS_INSIDE.match(value) is not None
    if "=" in value.rstrip("=") or len(value) < 6 or HOLDER.fullmatch(value):  # noqa: PLR2004 - a word
        return False
    is_code = WORDS.fullmatch(value) or len(value) < (WEAK_LENGTH if has_digits else 20) or not value.isalnum()
    return is_drawn(value) or not is_code


def _is_header(match: re.Match[str], value: str) -> bool:
    """The value of an Authorization header, and not the next word of a sentence or of code.

    A long value behind its scheme ("Bearer …") is one even where a draw of letters alone could be read as a name.
    """
    value = value.rstrip(",;.)")
    is_code = "(" in value or value.startswith("$") or LOWER_WORDS.fullmatch(value) or HOLDER.fullmatch(value)
    is_long = match["scheme"] is not None and len(value) >= WEAK_LENGTH and "." not in value
    return is_drawn(value) or not (is_code or (WORDS.fullmatch(value) and not is_long))


def _is_option(match: re.Match[str], value: str) -> bool:
    start = match.start()
    is_option = DASHES.search(match.string, max(start - 40, 0), start) is not None
    return is_option and not (value.startswith("-") or REFERENCE.search(value) or WORDS.fullmatch(value))


def _is_enclosed(match: re.Match[str], value: str) -> bool:
    return not (ABOUT.search(match["rest"]) or HOLDER.fullmatch(value) or "{" in value)


def _is_cookie(_: re.Match[str], value: str) -> bool:
    return "=" in value and not REFERENCE.search(value)


def _is_password(_: re.Match[str], value: str) -> bool:
    is_name = value.lower() in {"password", "passwd", "pass", "pw"}
    return not (is_name or value.rstrip(".,;)").isdigit() or value.startswith("%") or REFERENCE.search(value))


HEADER_VALUE = r"(?P<v>[^\s\"'\\]{8,4000})"
# kind, the words that it begins with, pattern, what decides: written in lower case, for a text in lower case
SAID = (
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
    ("secret", "secret api access token credential", PROSE, _is_said),
    ("secret", " ".join(sentences.PASSWORD_WORDS), sentences.SAID_PASSWORD, sentences.is_said_password),
    ("secret", " ".join(sentences.PASSWORD_WORDS), sentences.NEAR_PASSWORD, sentences.is_near_password),
)
# The same, for a text as it is.
WRITTEN = (
    ("webhook", "discord", r"discord(?:app)?\.com/api/webhooks/\d{5,25}/(?P<v>[\w-]{8,})", None),
    ("webhook", "hooks.slack", r"hooks\.slack\.com/(?:services|workflows)/(?P<v>[\w/]{8,})", None),
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
    ("secret", " ".join(sentences.PIN_WORDS), sentences.SAID_PIN, sentences.is_pin),
    *(("password", need, pattern, commands.is_argument) for need, pattern in commands.COMMANDS),
)
# The same that stand anywhere.
LOOSE = (
    ("bot token", ":", r":(?<=\d{8}:)[\w-]{35}(?![\w-])", None),
    ("password", ":", commands.PGPASS, commands.is_pgpass),
    ("password", commands.PIPED_NEEDS, commands.PIPED, commands.is_argument),
    ("password", commands.HASH_NEEDS, commands.HASHES, None),
    ("password", "pbkdf2 argon2 scrypt bcrypt md5$ sha1$ sha256$ sha512$", commands.NAMED_HASH, None),
    ("password", "{s {crypt {md5 {argon2 {bcrypt {pbkdf2", commands.LDAP_HASH, None),
)

# What begins with a prefix, and what does not.
TOKENS = (
    *(
        Shape(
            "token",
            re.compile(f"(?:{'|'.join(map(re.escape, prefixes.split()))}){body}"),
            prefixes=(*prefixes.split(),),
        )
        for prefixes, body in PREFIXED
    ),
    # Only where a word starts, be it after a line break written as `\n`, whose n would pass for a part of it. The
    # prefix comes first and is looked back at: a search for a literal is many times faster.
    *(
        Shape(
            "token",
            re.compile(rf"{prefix}(?:(?<=(?<![A-Za-z0-9_-]){prefix})|(?<=\\[nrt]{prefix})){body}"),
            prefixes=(written,),
        )
        for written, prefix, body in ((prefix, re.escape(prefix), body) for prefix, body in WORDED)
    ),
)
OTHERS = (
    *(Shape(kind, re.compile(pattern), holds, needs=frozenset(needs.split())) for kind, needs, pattern, holds in LOOSE),
    Shape("secret", ENCLOSED, _is_enclosed, any_case=True, needs=NAME_NEEDS),
    *(
        Shape(
            kind,
            re.compile(pattern),
            holds,
            any_case=any_case,
            needs=frozenset(needs.split()),
            is_anchored=True,
        )
        for any_case, table in ((False, WRITTEN), (True, SAID))
        for kind, needs, pattern, holds in table
    ),
)
# No token with a prefix is shorter; it has no space in it.
LONG = 11
NEEDED = NAME_NEEDS.union(*(shape.needs for shape in OTHERS))
