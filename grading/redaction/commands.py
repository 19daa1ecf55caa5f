"""Patterns for passwords in shell commands and password hashes, and checks of what they match."""

import re

from grading.redaction.values import PLACEHOLDER

# A word of a shell command, quoted or not; its value is group `v`.
ARGUMENT = (
    r"(?P<q>\\{0,3}[\"'])?(?P<v>(?(q)(?:(?!(?P=q))[^\n]){1,200}|(?:[^\s\"'`|;&<>()\\]|\\{1,2}[^\w\s\"'\\]){1,200}))"
)
# Between a command and its option: words of the same command, also on continued lines.
_WORDS = r"(?:[^\n|;&\\]|\\[^\s]|\\(?=[ \t])|\\\n){0,300}?"
# Options with their arguments, none or a few.
_OPTIONS = r"(?:\s{1,8}-[\w-]{1,40}(?:=\S{0,200})?){0,6}"
_SUDO = r"(?:sudo\s{1,4}(?:-\w{1,8}\s{1,4}){0,3})?"

# (literal that the text must have, pattern that begins with it) of commands with a password as option or argument.
COMMANDS = (
    *(
        (need, rf"(?<![\w.-]){need}{rest}\s(?:{_WORDS}\s)?{flag}{ARGUMENT}")
        for need, rest, flag in (
            # A space after -p or none, but for mysql, whose next word would be a database.
            ("mysql", r"\w{0,12}", r"(?:-p|--password=)(?![\s-])(?!\d+:\d)"),
            ("mysqladmin", "", r"password\s{1,4}"),
            ("mariadb", r"[\w-]{0,12}", r"(?:-p|--password=)(?![\s-])(?!\d+:\d)"),
            ("mongo", r"\w{0,8}", r"(?:-p|--password)[ =]{0,4}"),
            ("redis-cli", "", r"(?:-a|--pass)[ =]{1,4}"),
            ("sshpass", "", r"-p\s{0,4}"),
            ("ldap", r"\w{1,10}", r"-w\s{0,4}"),
            ("zip", "", r"-P\s{0,4}"),
            ("unzip", "", r"-P\s{0,4}"),
            ("7z", r"\w?", r"-p"),
            ("sqlcmd", "", r"-P\s{0,4}"),
            ("openssl", "", r"pass:"),
            ("keytool", "", r"-\w{0,10}pass\s{1,4}"),
            ("smbclient", "", r"(?:-U|--user)[ =]{0,4}[\"']?[^\s%\"']{1,80}%"),
            ("xfreerdp", "", r"/p:"),
            ("curl", "", r"(?:-u|--user|--proxy-user)[ =]{0,4}(?:\\{0,3}[\"'])?[^\s:\"'/]{1,80}:"),
            ("http", "s?", r"(?:-a|--auth)[ =]{1,4}(?:\\{0,3}[\"'])?[^\s:\"'/]{1,80}:"),
            ("net", r"\s{1,4}user", r"\S{1,80}\s{1,4}(?=\S{1,80}\s{1,4}/add)"),
            ("useradd", "", r"(?:-p|--password)[ =]{1,4}"),
            ("usermod", "", r"(?:-p|--password)[ =]{1,4}"),
            ("gpg", "2?", r"--passphrase[ =]{1,4}"),
        )
    ),
    ("chpasswd", rf"chpasswd\b[^\n|;]{{0,40}}<<<\s{{0,4}}(?:\\{{0,3}}[\"'])?[^\s:\"']{{1,64}}:{ARGUMENT}"),
    (
        "chpasswd",
        (
            r"chpasswd\b[^\n]{0,40}<<-?\s{0,4}[\"']?\w{1,20}(?:\\?[\"'])?[^\n\\]{0,80}(?:\n|\\{1,2}n)"
            r"[ \t>|+]{0,8}(?:\d{1,6}[\t→])?\s{0,8}[^\s:]{1,64}:(?P<v>[^\n\\]{1,200})"
        ),
    ),
)
# A password piped into a command that reads it, possibly with the user's name before it.
PIPED = (
    rf"(?:echo|printf)(?:\s{{1,8}}-\w{{1,4}}){{0,3}}\s{{1,8}}(?P<q>\\{{0,3}}[\"'])?(?:[\w.$@{{}}-]{{1,64}}:)?"
    r"(?P<v>(?(q)(?:(?!(?P=q)|\\n)[^\n]){1,200}|[^\s\"'`|;&<>()\\]{1,200}))(?(q)(?:\\n)?(?P=q))"
    rf"\s{{0,8}}\|\s{{0,8}}(?:{_SUDO}(?:/usr/sbin/)?chpasswd|{_SUDO}passwd\s{{1,4}}--stdin|"
    r"sudo\s{1,4}(?:-\w{1,8}\s{1,4}){0,3}-\w{0,4}S|"
    r"[^\n|;&]{1,200}\s(?:--password-stdin|--with-token|--passphrase-fd|--token-stdin|-passin stdin))"
)
PIPED_LITERALS = "chpasswd stdin sudo with-token passphrase-fd"
# The third word after the options, or the second where nothing is written (-n).
_WORD = r"(?:\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|[^\s|;&\"']{1,200})"
HTPASSWD = (
    r"htpasswd(?=[^\n]{0,40}\s-\w{0,6}b)(?:(?P<n>(?=[^\n]{0,40}\s-\w{0,6}n))|)"
    r"(?:\s{1,8}-\w{1,8}(?:\s{1,8}\d{1,3}(?=\s))?){1,6}\s{1,8}"
    rf"(?(n){_WORD}|{_WORD}\s{{1,8}}{_WORD})\s{{1,8}}{ARGUMENT}"
)
# `docker login -p …`, and the same of other programs for registries; not --password-stdin.
REGISTRY_LOGIN = rf"login\b{_WORDS}\s(?:-p|--password)(?!-stdin)[ =]{{0,8}}{ARGUMENT}"
_REGISTRY = re.compile(r"\b(?:docker|podman|nerdctl|buildah|skopeo|oras|helm|crane|regctl|az|oc)\b[^\n|;&]{0,120}$")
# A key as argument of a service's own command.
LOGIN = (
    rf"(?:(?<=wandb )|(?<=vault )|(?<=hf auth )|(?<=wandb  ))login{_OPTIONS}\s{{1,8}}(?:\\{{0,3}}[\"'])?"
    r"(?P<v>[\w.-]{16,200})"
)
PYTHON_LOGIN = rf"wandb\.login\([^)\n]{{0,80}}?\bkey\s{{0,3}}=\s{{0,3}}{ARGUMENT}"
LITERAL = (
    r"--from-literal(?:=|\s{1,8})(?P<o>\\{0,3}[\"'])?[\w.-]{1,100}=(?P<q>\\{0,3}[\"'])?"
    r"(?P<v>(?(q)(?:(?!(?P=q))[^\n]){1,2000}|(?(o)(?:(?!(?P=o))[^\n]){1,2000}|[^\s\"'`|;&<>\\]{1,2000})))"
)
# A line of .pgpass: host:port:database:user:password.
PGPASS = (
    r":(?:\d{4,5}|\*):(?!\d{1,5}:)[^\s:\"'`/]{1,63}:[^\s:\"'`/]{1,63}:"
    r"(?P<v>(?:[^\s:\\\"'`]|\\[:\\]){4,200})(?=[\s\"'`,;)\\]|$)"
)
_HOST = re.compile(r"(?:\*|[\w.-]*[A-Za-z.][\w.-]*|\])$")
# Password hashes in the formats of crypt(3), LDAP and Django; compose files write each $ twice.
_D = r"\\{0,2}\${1,2}"
HASHES = (
    rf"\$(?:2[abxy]?{_D}\d\d{_D}[\w./]{{6,}}|(?:g?y|7){_D}[\w./]{{1,40}}{_D}[\w./${{}}]{{4,}}|"
    rf"[56]{_D}(?:rounds=\d{{1,9}}{_D})?[\w./]{{1,32}}{_D}[\w./]{{6,}}|"
    rf"(?:1|apr1|md5){_D}[\w./]{{1,16}}{_D}[\w./]{{16,}}|"
    rf"(?:argon2(?:id|i|d)|scrypt|pbkdf2[\w-]{{0,12}}){_D}[\w.,=/+${{}}-]{{16,}}|[PHS]\$[\w./]{{24,}})"
)
NAMED_HASH = r"(?:(?:pbkdf2|argon2|scrypt|bcrypt)[\w-]{0,12}|md5|sha1|sha256|sha512)\$[\w./+=,$-]{24,}"
LDAP_HASH = r"\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT|ARGON2|BCRYPT|PBKDF2[\w-]{0,8})\}[\w./+=$,-]{8,}"
HASH_LITERALS = "$2 $y $gy $7 $5 $6 $1 $apr1 $md5 $argon2 $scrypt $pbkdf2 $p$ $h$ $s$"

# An option, a variable, a template, a placeholder.
_NO_VALUE = re.compile(
    r"(?:--?[a-z][a-z-]*|-|\$\w+|\$\{.*\}|\$\(.*\)?|%\(\w+\)s|%\w+%|\{\{.*|<[\w .-]+>?|\[redacted.*)$", re.DOTALL
)


def is_argument(_: re.Match[str], value: str) -> bool:
    """Whether a command's word is a literal value, not an option, variable or placeholder."""
    return not (_NO_VALUE.match(value) or PLACEHOLDER.fullmatch(value))


def is_pgpass(match: re.Match[str], value: str) -> bool:
    """Whether a PGPASS match has a literal value, and before it a host name that isn't part of a URL or path."""
    start = match.start()
    host = _HOST.search(match.string, max(start - 100, 0), start)
    if host is None or match.string[max(host.start() - 1, 0) : host.start()] in {"/", "@"}:
        return False
    return is_argument(match, value)


def is_literal(match: re.Match[str], value: str) -> bool:
    """Whether the last kind of object named before a LITERAL match is kubectl's secret, not a config map."""
    command = match.string[max(match.start() - 600, 0) : match.start()]
    return command.rfind("secret") >= command.rfind("configmap") and is_argument(match, value)


def is_registry(match: re.Match[str], value: str) -> bool:
    """Whether a REGISTRY_LOGIN match is a command of a known registry client."""
    start = match.start()
    return _REGISTRY.search(match.string, max(start - 160, 0), start) is not None and is_argument(match, value)
