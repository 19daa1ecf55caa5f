"""What secrets look like that the detection library lacks, or knows only whole: a table of linear, bounded patterns.

A transcript shows keys cut short, escaped and in assignments of every language, so a distinctive prefix is enough here.
Where a pattern has a group `v`, that is the secret; else all of it is. `Shape.holds` tells code and prose from values.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

QUOTE = r"(?:\\{0,3}[\"'`])"

PREFIXED = (
    # prefix, then at least this many characters of this class
    (r"sk-ant-", r"[\w-]{4,}"),
    (r"gh[opsur]_", r"[A-Za-z0-9]{8,}"),
    (r"github_pat_", r"\w{8,}"),
    (r"(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|GR1348941)", r"[\w.-]{8,}"),
    (r"(?:xox[abceoprs]|xapp)-", r"[\w-]{8,}"),
    (r"(?:AKIA|ASIA)", r"[A-Z0-9]{12,}"),
    (r"AIza", r"[\w-]{16,}"),
    (r"ya29\.", r"[\w-]{16,}"),
    (r"GOCSPX-", r"[\w-]{8,}"),
    (r"pypi-Ag", r"[\w-]{8,}"),
    (r"(?:[rs]k_(?:live|test)_|whsec_)", r"[A-Za-z0-9]{8,}"),
    (r"(?:dckr_pat_|do[op]_v1_|shp(?:at|ca|pa|ss)_|lin_api_|figd_|glsa_|sntrys_|AGE-SECRET-KEY-1)", r"[\w+/=-]{16,}"),
    (r"(?:hvs|hvb)\.", r"[\w-]{20,}"),
    (r"ATATT3x", r"[\w=-]{16,}"),
)
WORDED = (
    # as above, where the prefix is no more than a word: only where a word starts
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
    ("SG[.]", r"(?=[\w-]{0,20}\d)[\w-]{16,}(?:\.[\w-]*)?"),
    ("eyJ", r"[\w-]{8,}={0,2}\.[\w-]{4,}={0,2}(?:\.[\w-]*)?"),
)


# The names of variables, fields and options whose values are secrets; the second kind is often something else.
STRONG = (
    r"api[ _-]?key|(?:secret[ _-]?)?access[ _-]?key|secret|passw(?:or)?d|passphrase|passwort|contrase[nñ]a|"
    r"auth[_-]?token|auth[_-]?key|private[_-]?key|client[_-]?key|account[_-]?key|service[_-]?key|"
    r"(?:encryption|signing|master|storage|shared|database|db)[_-]?key|db[_-]?pass|pgpass|credential"
)
WEAK = r"token|\bpwd|_pwd|_pass\b|\bauth|\bsig|signature|_key"
NAMED = (
    rf"(?=[acdemps_tv])(?P<name>{STRONG}|(?P<weak>{WEAK}))(?P<rest>[\w.-]{{0,40}}){QUOTE}?\]?(?: \[[^\]\n]{{0,24}}\])?"
    rf"\s{{0,3}}(?:=>|:=|={{1,3}}|:(?!:))\s{{0,3}}"
    rf"(?:(?P<q>{QUOTE})(?P<quoted>[^\n]{{4,2000}}?)(?P=q)|{QUOTE}?(?P<bare>[^\s\"'`,;&|<>(){{}}\[\]\\]{{6,2000}})(?![\w.]*[(\[]))"
)
OPTION = (
    rf"(?<![\w-])--?[\w-]{{0,30}}?(?:password|passwd|passphrase|token|secret|api-?key|access-?key)\s{{1,3}}{QUOTE}?"
    rf"(?P<v>[^\s\"'`\\]{{6,500}})"
)

ABOUT = re.compile(  # what a name's ending says of a value that is about a secret and not one
    r"(?:hash|sha\d*|digest|[_-]?id|ids|ur[il]|path|file|name|type|len(?:gth)?|count|expir\w*|ttl|limit|usage|budget|s|"
    r"version|policy|field|column|label|hint|reset|required|enabled|manager|class|env|prefix|regex|pattern|kind|status|"
    r"\.(?:py|js|jsx|ts|tsx|md|rs|go|rb|java|html|css|json|ya?ml|toml|txt|sh|c|h|cpp))$",
    re.IGNORECASE,
)
REFERENCE = re.compile(  # what stands in a value's place: a variable, a template, a placeholder, a path, a web address
    r"^(?:[,;.)\s]|\$|%\(|%\w+%$|\{|<|\*+$|x+$|\.+$|\[redacted|https?://|(?:[~.]{0,2}/)?[\w.-]*[a-z](?:/[\w.-]+)+$)|\$\{|\{\{",
    re.IGNORECASE,
)
CODE = re.compile(  # dotted names, snake_case, one word in letters, numbers, line:column
    r"^(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[a-z]+(?:_[a-z]+)+|[A-Z]+(?:_[A-Z]+)+|[\d.,:_-]+|[A-Za-z]+\??[.!:]?)$"
)
PASSWORDS = re.compile(r"pass|pwd|contrase", re.IGNORECASE)
WEAK_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret. `holds` decides, from the match and the value, whether it is one.

    `any_case`: the pattern is written in lower case and is for a text in lower case (much faster than IGNORECASE).
    """

    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[re.Match[str], str], bool] | None = None
    any_case: bool = False

    def find(self, text: str, lowered: str) -> Iterator[tuple[int, int]]:
        """Where the secrets are, as (start, end); `lowered` is the text in lower case, of the same length."""
        for match in self.pattern.finditer(lowered if self.any_case else text):
            start, end = match.span(next((name for name in GROUPS if match.groupdict().get(name)), 0))
            is_done = text.startswith(DONE, start)
            if not is_done and (self.holds is None or self.holds(match, text[start:end])):
                yield start, end


GROUPS, DONE = ("v", "quoted", "bare"), "[redacted "


def _is_named_secret(match: re.Match[str], value: str) -> bool:
    if REFERENCE.search(value) or (match["rest"] and ABOUT.search(match["rest"])):
        return False
    if match["weak"]:
        return len(value) >= WEAK_LENGTH and _is_mixed(match, value)
    if not PASSWORDS.search(match["name"]):
        return not CODE.match(value)
    is_word = value.isalpha() and (len(value) < 8 or value.lower() == match["name"])  # noqa: PLR2004 - types, placeholders
    return bool(match["quoted"]) or not (is_word or (CODE.match(value) and not value.isalpha()))


def _is_mixed(_: re.Match[str], value: str) -> bool:
    """Letters and digits, and neither a reference nor words."""
    has_both = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return has_both and not REFERENCE.search(value) and " " not in value


def _is_option(_: re.Match[str], value: str) -> bool:
    return not (value.startswith("-") or REFERENCE.search(value) or CODE.match(value))


def _is_cookie(_: re.Match[str], value: str) -> bool:
    return "=" in value and not REFERENCE.search(value)


def _is_password(_: re.Match[str], value: str) -> bool:
    return not (value.isdigit() or REFERENCE.search(value))


HEADER_VALUE = r"(?P<v>[^\s\"'\\]{8,4000})"
# kind, pattern, what decides: written in lower case, for a text in lower case
SAID = (
    ("signature", r"[?&](?:sig|x-amz-signature|x-goog-signature)=(?P<v>[\w%+/=.-]{16,})", None),
    ("password", r"login\s{1,8}\S{1,80}\s{1,8}password\s{1,8}(?P<v>\S{4,200})", None),
    ("password", r"(?:identified by|password)\s{1,3}'(?P<v>[^'\n]{4,200})'", None),
    (
        "credentials",
        rf"authorization{QUOTE}?\s{{0,3}}[:=,]\s{{0,3}}{QUOTE}?(?:[a-z][\w-]{{2,20}} {{1,3}})?{HEADER_VALUE}",
        _is_option,
    ),
    ("credentials", r"bearer\s{1,3}(?P<v>[\w.~+/=-]{12,4000})", _is_mixed),
    ("credentials", rf"{QUOTE}auth{QUOTE}\s{{0,3}}:\s{{0,3}}{QUOTE}(?P<v>[\w+/=]{{8,}})", None),
    ("cookies", rf"cookie{QUOTE}?\s{{0,3}}:\s{{0,3}}{QUOTE}?(?P<v>[^\n\"'\\]{{8,4000}})", _is_cookie),
    ("cookies", r"(?<![\w-])(?:-b|--cookie)[ =][\"'](?P<v>[^\"'\n]{8,4000})[\"']", _is_cookie),
    ("secret", OPTION, _is_option),
    ("secret", NAMED, _is_named_secret),
)
# The same, for a text as it is.
WRITTEN = (
    ("bot token", r"(?<!\d)\d{8,10}:[\w-]{35}(?![\w-])", None),
    ("webhook", r"discord(?:app)?\.com/api/webhooks/\d{5,25}/(?P<v>[\w-]{8,})", None),
    ("webhook", r"hooks\.slack\.com/(?:services|workflows)/(?P<v>[\w/]{8,})", None),
    ("password", r"://[^\s/:@\"']{0,80}:(?P<v>[^\s/\"']{1,200})@", _is_password),
    ("password", r"://(?P<v>[\w-]{20,200})@", _is_mixed),
    (
        "password",
        rf"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{QUOTE}?[^\s:\"'/]{{1,80}}:(?P<v>[^\s\"'/][^\s\"']{{3,200}})",
        _is_password,
    ),
    ("password", r"mysql(?:dump|admin)?\b[^\n|;&]{0,120}?\s-p(?P<v>[^\s-]\S{3,80})", None),
    ("password", r"sshpass\s{1,3}-p\s{0,3}[\"']?(?P<v>[^\s\"']{4,80})", None),
)

SHAPES = (
    *(Shape("token", re.compile(prefix + body)) for prefix, body in PREFIXED),
    # Only where a word starts, be it after a line break written as `\n`, whose n would pass for a part of it. The
    # prefix comes first and is looked back at: a search for a literal is many times faster.
    *(
        Shape("token", re.compile(rf"{prefix}(?:(?<=(?<![A-Za-z0-9_-]){prefix})|(?<=\\[nrt]{prefix})){body}"))
        for prefix, body in WORDED
    ),
    *(Shape(kind, re.compile(pattern), holds) for kind, pattern, holds in WRITTEN),
    *(Shape(kind, re.compile(pattern), holds, any_case=True) for kind, pattern, holds in SAID),
)
