"""What secrets look like that the detection library lacks, or knows only whole: a table of linear, bounded patterns.

A transcript shows keys cut short, escaped and in assignments of every language, so a distinctive prefix is enough here.
Where a pattern has a group `v`, that is the secret; else all of it is. `Shape.holds` tells code and prose from values.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grading.redaction.random_runs import is_drawn

QUOTE = r"(?:\\{0,3}[\"'`])"

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


# The names of variables, fields and options whose values are secrets. Those of the second kind are always, where a
# file of settings or JSON gives them; the third kind is often something else.
STRONG = (
    r"api[ _-]?key|(?:secret[ _-]?)?access[ _-]?key|secret|passw(?:or)?d|passphrase|passcode|passwort|contrase[nñ]a|"
    r"auth[_-]?token|auth[_-]?key|private[_-]?key|client[_-]?key|account[_-]?key|service[_-]?key|"
    r"(?:encryption|signing|master|storage|shared|database|db)[_-]?key|db[_-]?pass|pgpass|credential"
)
# A text without any of these has none of them.
NAME_NEEDS = frozenset({"key", "secret", "pass", "contrase", "token", "credential", "pwd", "auth", "sig"})
GIVEN = r"token|\bpwd|_pwd|_pass\b"
WEAK = r"\bauth|(?<!think-)\bsig|signature|_key"
ASSIGNED = re.compile(
    rf"(?=[acdemps_tv])(?P<name>{STRONG}|(?P<given>{GIVEN})|(?P<weak>{WEAK}))(?P<rest>[\w.-]{{0,40}})"
    rf"(?P<key>{QUOTE}?)\]?(?: \[[^\]\n]{{0,24}}\])?\s{{0,3}}(?P<sign>=>|:=|={{1,3}}|:(?!:))(?P<space>\s{{0,3}})"
)
ENCLOSED = re.compile(rf"<[\w:.-]{{0,30}}(?:{STRONG}|token)(?P<rest>[\w.-]{{0,20}})>(?P<v>[^<\n]{{4,500}})</")
BARE = re.compile(r"[^\s\"'`,;&|<>(){}\[\]\\]{6,2000}(?![\w.]*[(\[])")
TO_THE_END = re.compile(r"[^\s\"'`\\]{4,2000}")
OPENING = re.compile(QUOTE)
LONGEST_VALUE = 2000
# What stands before a name at the start of a line, the marks of diffs, quotes, lists and numbering among it; a line
# that was written as an escape begins after it.
LINE_START = re.compile(
    r"(?:^|\n|\\n)[ \t>|+-]{0,40}(?:\d{1,6}[\t→:|])?[ \t+-]{0,40}(?:(?:export|set|env|arg|declare -x) )?[\w.-]{0,60}$"
)
OPTION = (
    rf"(?<![\w-])--?[\w-]{{0,30}}?(?:password|passwd|passphrase|token|secret|api-?key|access-?key)\s{{1,3}}{QUOTE}?"
    rf"(?P<v>[^\s\"'`\\]{{6,500}})"
)
# "The password for the staging database is …", "log in with user admin, password …".
PROSE = (
    r"(?:(?:password|passwd|passphrase|passcode|passwort|contrase[nñ]a)(?P<word>)|secret key|api key|access key|token|"
    r"credentials?)"
    r"(?: (?:for|of|on|at) [^\n:=]{1,80}?(?: is|:| =)|(?: is| was| =|:)(?: now)?|(?(word)(?:,| (?:set )?to)?|(?!)))"
    rf"\s{{1,3}}(?:\*\*)?{QUOTE}?(?=(?P<v>[^\s\"'`\\()\[\]<>{{}}]{{6,200}}))"
)

ABOUT = re.compile(  # what a name's ending says of a value that is about a secret and not one
    r"(?:hash|sha\d*|digest|[_-]?id|ids|ur[il]|path|file|name|type|len(?:gth)?|count|expir\w*|ttl|limit|usage|budget|s|"
    r"version|policy|field|column|label|hint|reset|required|enabled|manager|class|env|prefix|regex|pattern|kind|status|"
    r"index|format|mode|method|provider|source|ref|store|at|date|scope|header|helper|param\w*|ization|entication|enticator|or|"
    r"estimate\w*|total|window|rate|ratio|details|message|error|placeholder|rotation|"
    r"\.(?:py|js|jsx|ts|tsx|md|rs|go|rb|java|html|css|json|ya?ml|toml|txt|sh|c|h|cpp))$",
    re.IGNORECASE,
)
HOLDER = re.compile(  # what stands in a value's place, whole: a variable, a template, a placeholder, a call, a type
    r"\$\w+|\$?\{.*\}+|\$\(.*\)|<[\w /.,'-]{0,60}>|%\(\w+\)s|%\w+%|%s|\[redacted .*|[*x•.…]+|https?://\S*|-+|\w+\(.*\),?|"
    r"(?:replace|insert|example|placeholder|redacted|dummy|fake)[\w .-]*|"
    r"[A-Z][A-Z0-9_]*_(?:TOKEN|KEY|SECRET|PASSWORD|PASS)|"
    r"(?:your|my|the|some)(?:[ _-][a-z]+)+|an?(?: [a-z]+)+|\s.*|"
    r"(?:str|string|int|integer|number|bool|boolean|bytes|any|none|null|undefined|"
    r"nil|true|false|unknown|optional|required|secret|token|password|secretstr|object|read|write|void|char|text|env|"
    r"changed|missing|invalid|valid|expired|not|no|yes|on|off|ok|set|unset|redacted|hidden|empty|void|default|value)"
    r"(?:\[[\w, |]*\])?\??[,;]?",
    re.IGNORECASE,
)
ANGLED = re.compile(r"<[\w /.,'-]{0,60}>|\$\(")  # as <your key>
REFERENCE = re.compile(  # the beginning of such a thing, where nothing says where the value ends; a path, an address
    r"^(?:[,;.)\s]|\$|%\(|%\w+%$|\{|<|\*+$|x+$|\.+$|\[redacted|https?://|(?:[~.]{0,2}/)?[\w.-]*[a-z](?:/[\w.-]+)+$)|\$\{|\{\{",
    re.IGNORECASE,
)
WORD = r"(?=[A-Za-z]{0,4}[aeiouAEIOU])"
WORDS = re.compile(  # words, alone or as names of code are made of them; numbers, line:column
    rf"{WORD}[A-Za-z]?[a-z]{{2,}}(?:[-'/_.]{WORD}[A-Z]?[a-z]{{2,}}|{WORD}[A-Z][a-z]{{2,}}|[-_.]?[0-9]{{1,2}}(?![0-9A-Za-z]))*"
    r"[?.!:,;]*|[A-Z]+(?:_[A-Z]+)*[?.!:,;]*|[\d.,:_-]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Z]?[a-z]{1,2}"
)
CALL, HEX = re.compile(r"\w\(|=>|::|<\w"), re.compile(r"[0-9a-f#]+")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
TOKEN_VALUE = re.compile(r"[_-]?(?:secret|value|key|\d{1,2})")
LOWER_WORDS = re.compile(r"[a-z]+(?:[-'/][a-z]+)*$")
DIGITS_INSIDE = re.compile(r"(?=\w*[a-zA-Z])\w*\d\w*$")
PASSWORDS = re.compile(r"pass|pwd|contrase", re.IGNORECASE)
WEAK_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret. `holds` decides, from the match and the value, whether it is one.

    `any_case`: the pattern is written in lower case and is for a text in lower case (much faster than IGNORECASE). A
    text that has none of its words has none of it, and looking for words is many times faster than for patterns:
    `prefixes` are looked for in its LONG words, or else `needs` in the text in lower case.
    """

    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[re.Match[str], str], bool] | None = None
    any_case: bool = False
    needs: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def find(self, text: str, lowered: str) -> Iterator[tuple[int, int]]:
        """Where the secrets are, as (start, end); `lowered` is the text in lower case, of the same length."""
        for match in self.pattern.finditer(lowered if self.any_case else text):
            start, end = match.span("v" if "v" in match.groupdict() else 0)
            is_done = text.startswith(DONE, start)
            if not is_done and (self.holds is None or self.holds(match, text[start:end])):
                yield start, end


DONE = "[redacted "


def named(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where the values stand that a name says are secrets, as (start, end).

    JSON, YAML and files of settings say what is a value: there it is taken whatever it looks like. Elsewhere it may be
    code or prose, and has to look like a value.
    """
    done = 0
    for match in ASSIGNED.finditer(lowered):
        at = match.end()
        if at < done or ABOUT.search(match["rest"]) or text.startswith(DONE, at):
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
        if len(value) < 4 or HOLDER.fullmatch(value) or is_code:  # noqa: PLR2004 - not worth hiding
            continue
        if _is_taken(match, value, is_given=is_given, is_quoted=is_quoted):
            done = end
            yield start, end


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
    return match["sign"] == ":" and match["space"] in {" ", "  "}


def _is_all(text: str, match: re.Match[str], end: int) -> bool:
    """Whether nothing follows on the line but a comment, which in code it would; a shell may have a command there."""
    if match["sign"] == "=":
        return True
    return text[end - 1] not in ",;({[" and (
        text[end : end + 1] in {"", "\n", "\r", "\\"} or text[end : end + 2] == " #"
    )


def _is_taken(match: re.Match[str], value: str, *, is_given: bool, is_quoted: bool) -> bool:
    if match["weak"]:
        return len(value) >= (2 * WEAK_LENGTH if HEX.fullmatch(value) else WEAK_LENGTH) and _is_mixed(match, value)
    if match["given"] and match["rest"] and not TOKEN_VALUE.fullmatch(match["rest"]):
        return False
    if is_given:
        return not (match["given"] and value.replace(".", "").isdigit()) and (is_quoted or not DOTTED.fullmatch(value))
    if match["given"]:
        return len(value) >= WEAK_LENGTH and _is_mixed(match, value)
    if REFERENCE.search(value) and not is_drawn(value):
        return False
    if not PASSWORDS.search(match["name"]):
        return not WORDS.fullmatch(value) or is_drawn(value)
    is_word = value.isalpha() and (len(value) < 8 or value.lower() == match["name"])  # noqa: PLR2004 - types, placeholders
    return is_quoted or not (is_word or (WORDS.fullmatch(value) and not value.isalpha()))


def _is_mixed(_: re.Match[str], value: str) -> bool:
    """Letters and digits, and neither a reference nor words."""
    has_both = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return " " not in value and (is_drawn(value) or (has_both and not REFERENCE.search(value)))


def _is_said(match: re.Match[str], value: str) -> bool:
    """Of what follows a password in prose, or a key: a word is none, and an assignment is told elsewhere."""
    value = value.strip(".,;:!?*")
    has_digits = DIGITS_INSIDE.match(value) is not None
    if "=" in value.rstrip("=") or len(value) < 6 or HOLDER.fullmatch(value):  # noqa: PLR2004 - a word
        return False
    if match["word"] is None:
        is_code = WORDS.fullmatch(value) or len(value) < (WEAK_LENGTH if has_digits else 20) or not value.isalnum()
        return is_drawn(value) or not is_code
    is_word = WORDS.fullmatch(value) or REFERENCE.search(value) or LOWER_WORDS.match(value)
    return is_drawn(value) or has_digits or not is_word


def _is_header(match: re.Match[str], value: str) -> bool:
    """The value of an Authorization header, and not the next word of a sentence or of code.

    A long value behind its scheme ("Bearer …") is one even where a draw of letters alone could be read as a name.
    """
    value = value.rstrip(",;.)")
    is_code = "(" in value or value.startswith("$") or LOWER_WORDS.fullmatch(value) or HOLDER.fullmatch(value)
    is_long = match["scheme"] is not None and len(value) >= WEAK_LENGTH and "." not in value
    return is_drawn(value) or not (is_code or (WORDS.fullmatch(value) and not is_long))


def _is_option(_: re.Match[str], value: str) -> bool:
    return not (value.startswith("-") or REFERENCE.search(value) or WORDS.fullmatch(value))


def _is_enclosed(match: re.Match[str], value: str) -> bool:
    return not (ABOUT.search(match["rest"]) or HOLDER.fullmatch(value) or "{" in value)


def _is_cookie(_: re.Match[str], value: str) -> bool:
    return "=" in value and not REFERENCE.search(value)


def _is_password(_: re.Match[str], value: str) -> bool:
    return not (value.isdigit() or value.startswith("%") or REFERENCE.search(value))


HEADER_VALUE = r"(?P<v>[^\s\"'\\]{8,4000})"
# kind, pattern, what decides: written in lower case, for a text in lower case
SAID = (
    ("signature", r"[?&](?:sig|x-amz-signature|x-goog-signature)=(?P<v>[\w%+/=.-]{16,})", None),
    ("password", r"login\s{1,8}\S{1,80}\s{1,8}password\s{1,8}(?P<v>\S{4,200})", None),
    ("password", r"user \S{1,80}, password (?P<v>\S{8,200})", _is_password),  # what a first start prints
    ("password", r"(?:identified by|password)\s{1,3}'(?P<v>[^'\n]{4,200})'", None),
    (
        "credentials",
        rf"authorization{QUOTE}?\s{{0,3}}[:=,]\s{{0,3}}{QUOTE}?(?P<scheme>[a-z][\w-]{{2,20}} {{1,3}})?{HEADER_VALUE}",
        _is_header,
    ),
    ("credentials", r"bearer\s{1,3}(?P<v>[\w.~+/=-]{12,4000})", _is_mixed),
    ("credentials", rf"{QUOTE}auth{QUOTE}\s{{0,3}}:\s{{0,3}}{QUOTE}(?P<v>[\w+/=]{{8,}})", None),
    ("cookies", rf"cookie{QUOTE}?\s{{0,3}}:\s{{0,3}}{QUOTE}?(?P<v>[^\n\"'\\]{{8,4000}})", _is_cookie),
    ("cookies", r"(?<![\w-])(?:-b|--cookie)[ =][\"'](?P<v>[^\"'\n]{8,4000})[\"']", _is_cookie),
    ("secret", OPTION, _is_option),
    ("secret", ENCLOSED.pattern, _is_enclosed),
    ("secret", PROSE, _is_said),
)
NEEDS = {
    "signature": ("sig",),
    "password": ("login", "identified by", "password"),
    "credentials": ("auth", "bearer"),
    "cookies": ("cookie", "-b ", "-b="),
    "secret": ("pass", "contrase", "token", "secret", "key", "credential"),
}
# The same, for a text as it is; and what it needs.
WRITTEN = (
    ("bot token", ":", r":(?<=\d{8}:)[\w-]{35}(?![\w-])", None),
    ("webhook", "discord", r"discord(?:app)?\.com/api/webhooks/\d{5,25}/(?P<v>[\w-]{8,})", None),
    ("webhook", "hooks.slack", r"hooks\.slack\.com/(?:services|workflows)/(?P<v>[\w/]{8,})", None),
    ("password", "://", r"://[^\s/:@\"']{0,80}:(?P<v>[^\s/\"']{1,200})@", _is_password),
    ("password", "://", r"://(?P<v>[\w-]{20,200})@", _is_mixed),
    (
        "password",
        "-u",
        rf"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{QUOTE}?[^\s:\"'/]{{1,80}}:(?P<v>[^\s\"'/][^\s\"']{{3,200}})",
        _is_password,
    ),
    ("password", "mysql", r"mysql(?:dump|admin)?\b[^\n|;&]{0,120}?\s-p(?P<v>[^\s-]\S{3,80})", None),
    ("password", "sshpass", r"sshpass\s{1,3}-p\s{0,3}[\"']?(?P<v>[^\s\"']{4,80})", None),
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
    *(Shape(kind, re.compile(pattern), holds, needs=frozenset({need})) for kind, need, pattern, holds in WRITTEN),
    *(
        Shape(kind, re.compile(pattern), holds, any_case=True, needs=frozenset(NEEDS[kind]))
        for kind, pattern, holds in SAID
    ),
)
# No token with a prefix is shorter; it has no space in it.
LONG = 11
NEEDED = NAME_NEEDS.union(*(shape.needs for shape in OTHERS))
