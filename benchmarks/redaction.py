"""How much of what is secret is hidden, how much of what is not, and how long does it take?

Random values of each shape, in the places where sessions have them, go through `grading.redaction.redact` like every
page, prompt and export. A value counts as hidden if no six characters in a row of it are left. `named` values are
called secret by a name, a prefix or a sentence. `bare` ones have at least 32 characters and nothing calls them secret;
hexadecimal ones are left out, because a commit looks the same.

Hidden spans of real transcripts (GRADING_DATA_DIR, else `../shared/data` beside the checkout) are counted in the half
of the files that the rules were not fitted on, by the hash of the file's name. False ones are those that nobody wrote
as the value of a secret: hashes, ids, paths, code and prose, judged by the span and the text before it. Examples and
test values, such as `"password": "hunter2"`, should be hidden and are counted apart. `--spans` lists them all.

    python benchmarks/redaction.py [--quick | --smoke] [--spans]
"""

import base64
import hashlib
import json
import re
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

STATE = tempfile.TemporaryDirectory()
scratch.code(STATE.name)

from grading.evidence.transcripts.lines import raw_lines  # noqa: E402 - the settings first
from grading.formats import EmptyTranscript, UnknownFormat, read  # noqa: E402 - the settings first
from grading.redaction import find_secrets, redact  # noqa: E402 - the settings first

ALNUM = string.ascii_letters + string.digits
SYMBOLS = ALNUM + "!#$%&()*+,-./:;<=>?@[]^_{|}~"
Maker = Callable[[Random], str]
SEED = 20261122
# How many characters in a row may not be left of a hidden value.
LEFT_CHARACTERS = 6


def drawn(alphabet: str, *lengths: int) -> Maker:
    return lambda rng: "".join(rng.choices(alphabet, k=rng.choice(lengths)))


def b64(*sizes: int, url: bool = False) -> Maker:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    return lambda rng: encode(rng.randbytes(rng.choice(sizes))).decode().rstrip("=" if url else "")


PASSWORD, TOKEN = drawn(ALNUM, 10, 12, 16, 20), drawn(ALNUM, 20, 24, 32, 40)
HEXES, URL = drawn("0123456789abcdef", 32, 40, 64), b64(18, 24, 32, 48, url=True)
BASE, STRONG = b64(12, 16, 24, 30, 32, 48), drawn(SYMBOLS, 12, 16, 20, 24)
# Each shape: the text around it, and what is drawn for each {}.
NAMED: dict[str, tuple[str, tuple[Maker, ...]]] = {
    "aws sts": (
        (
            '{{\n  "Credentials": {{\n    "AccessKeyId": "ASIA{}",\n    "SecretAccessKey": "{}",\n'
            '    "SessionToken": "{}",\n    "Expiration": "2026-03-31T11:04:00Z"\n  }}\n}}'
        ),
        (drawn(string.ascii_uppercase + "234567", 16), b64(30), b64(200, 300, 400)),
    ),
    "aws environment": ("export AWS_SECRET_ACCESS_KEY={}", (b64(30),)),
    "aws file": ("[default]\naws_secret_access_key = {}", (b64(30),)),
    "site's start-up line": ("   log in     user admin, password {}   (shown this once)", (b64(12, url=True),)),
    "site's token": ("curl -H 'X: gs_{}' http://localhost:8000/", (b64(32, url=True),)),
    "site's token alone": ("Token of agent bob (shown this once):\n\n    gs_{}\n", (b64(32, url=True),)),
    "json password": ('{{"user": "bob", "password": "{}"}}', (PASSWORD,)),
    "json password with symbols": ('{{"user": "bob", "password": "{}", "port": 5432}}', (STRONG,)),
    "json base64 password": ('{{"password": "{}"}}', (BASE,)),
    "json token": ('{{"access_token": "{}", "expires_in": 3600}}', (TOKEN,)),
    "json refresh token": ('{{"refresh_token":"{}"}}', (URL,)),
    "json client secret": ('{{"clientSecret": "{}"}}', (URL,)),
    "json api key in hex": ('{{"apiKey": "{}"}}', (HEXES,)),
    "json in json": ('"{{\\"api_key\\": \\"{}\\"}}"', (TOKEN,)),
    "yaml password": ("database:\n  password: {}\n  port: 5432", (PASSWORD,)),
    "yaml quoted": ('database:\n  password: "{}"\n', (STRONG,)),
    "yaml base64": ("data:\n  db-password: {}\n", (BASE,)),
    "yaml token": ("user:\n  token: {}\n", (URL,)),
    "dotenv": ("DEBUG=1\nDB_PASSWORD={}\nPORT=1", (PASSWORD,)),
    "dotenv with symbols": ("DEBUG=1\nDB_PASSWORD='{}'\nPORT=1", (STRONG,)),
    "dotenv secret": ("SECRET_KEY={}", (URL,)),
    "dotenv token": ("BOT_TOKEN={}", (URL,)),
    "dotenv base64": ("ENCRYPTION_KEY={}", (BASE,)),
    "dotenv hex": ("SESSION_SECRET={}", (HEXES,)),
    "numbered listing": ("    12→API_SECRET={}\n    13→X=1", (TOKEN,)),
    "diff": ("+++ b/.env\n+API_TOKEN={}\n+X=1", (TOKEN,)),
    "basic header": ("curl -H 'Authorization: Basic {}' https://example.test/", (b64(15, 18, 24),)),
    "bearer header": ('-H "Authorization: Bearer {}"', (URL,)),
    "cookie": ("Cookie: theme=dark; sessionid={}", (drawn(string.ascii_lowercase + string.digits, 32),)),
    "set-cookie": ("Set-Cookie: session={}; HttpOnly", (URL,)),
    "database url": ("postgres://app:{}@db.example.test:5432/app", (PASSWORD,)),
    "redis url": ("redis://:{}@cache.example.test/0", (URL,)),
    "prose is": ("The password is {} and it works.", (PASSWORD,)),
    "prose for": ("I set the password for the staging database: {}", (PASSWORD,)),
    "prose to": ("I changed the admin password to {}.", (PASSWORD,)),
    "prose token": ("Use this token: {} from now on", (TOKEN,)),
    "option": ("tool login --password {} --user bob", (PASSWORD,)),
    "xml": ("<server><password>{}</password></server>", (PASSWORD,)),
    "github": ("ghp_{}", (drawn(ALNUM, 36),)),
    "anthropic": ("sk-ant-api03-{}", (drawn(ALNUM + "-_", 93),)),
    "slack": ("xoxb-123456789012-{}", (drawn(ALNUM, 24),)),
    "coloured": ("\x1b[32mAPI_KEY\x1b[0m=\x1b[1m{}\x1b[0m", (TOKEN,)),
    # What people type into a shell.
    "pgpass": ("db.example.test:5432:shop:app:{}", (PASSWORD,)),
    "pgpass with stars": ("*:*:*:app:{}\n", (PASSWORD,)),
    "wandb login": ("$ wandb login {}", (drawn("0123456789abcdef", 40),)),
    "docker login": ("docker login -u bob -p {} registry.example.test", (PASSWORD,)),
    "docker login, quoted": ("docker login -u bob --password='{}'", (STRONG,)),
    "htpasswd": ("htpasswd -b /etc/nginx/users bob {}", (PASSWORD,)),
    "chpasswd": ("echo bob:{} | sudo chpasswd", (PASSWORD,)),
    "chpasswd, quoted": ("echo 'bob:{}' | chpasswd", (STRONG,)),
    "sudo": ("echo {} | sudo -S apt-get update", (PASSWORD,)),
    "mysql": ("mysql -uroot -p'{}' shop", (STRONG,)),
    "curl": ("curl -u bob:{} https://example.test", (PASSWORD,)),
    "kubectl": ("kubectl create secret generic db --from-literal=user={} --from-literal=k={}", (PASSWORD, PASSWORD)),
    "redis-cli": ("redis-cli -a {} ping", (PASSWORD,)),
    # Passwords' hashes.
    "yescrypt": ("root:$y$j9T${}${}:19700:0:99999:7:::", (drawn(ALNUM, 22), drawn(ALNUM, 43))),
    "bcrypt": ("bob:$2b$12${}", (drawn(ALNUM + "./", 53),)),
    "sha512-crypt": ("root:$6${}${}:19700:::", (drawn(ALNUM, 16), drawn(ALNUM + "./", 86))),
    # In sentences and behind labels.
    "pw": ("my pw: {}", (PASSWORD,)),
    "pw is": ("the pw is {}", (PASSWORD,)),
    "pass =": ("user = bob\npass = {}\n", (PASSWORD,)),
    "smtp_pass": ("smtp_pass={}", (PASSWORD,)),
    "PIN": ("my PIN is {}", (drawn(string.digits, 4, 6),)),
    "PIN:": ("PIN: {}", (drawn(string.digits, 4, 6),)),
    "German": ("das Passwort ist {}", (PASSWORD,)),
    "German, a label": ("Passwort: {}", (PASSWORD,)),
    "German, another word": ("Das Kennwort für die Datenbank lautet {}.", (PASSWORD,)),
    "French": ("le mot de passe est {}", (PASSWORD,)),
    "French, a label": ("Mot de passe : {}", (PASSWORD,)),
    "Spanish": ("la contraseña es {}", (PASSWORD,)),
    "Spanish, a label": ("Contraseña: {}", (PASSWORD,)),
    "Portuguese": ("a senha é {}", (PASSWORD,)),
    "Portuguese, a label": ("Senha: {}", (PASSWORD,)),
    "Russian": ("пароль от базы — {}", (PASSWORD,)),
    "Russian, a label": ("Пароль: {}", (PASSWORD,)),
    "Chinese": ("我的密码是{}。", (PASSWORD,)),
    "Chinese, a label": ("密码：{}", (PASSWORD,)),
}


def split_by_zero_width(rng: Random) -> tuple[str, list[str]]:
    values = [TOKEN(rng), TOKEN(rng)]
    return "API_KEY=" + "\u200b".join(values), values


def wrapped_by_a_terminal(rng: Random) -> tuple[str, list[str]]:
    value = drawn(ALNUM, 90, 120, 180)(rng)
    text = f"export GITHUB_PERSONAL_ACCESS_TOKEN_FOR_THE_BOT=ghp_{value}"
    lines = [text[at : at + 80] for at in range(0, len(text), 80)]
    return "\n".join(lines), [lines[0].rpartition("_")[2], *(line for line in lines[1:] if len(line) > 5)]  # noqa: PLR2004


def after_much_text(rng: Random) -> tuple[str, list[str]]:
    """Across the border between two pieces of text that the patterns see."""
    value = TOKEN(rng)
    return "x " * rng.randint(950, 999) + "API_KEY=" + value, [value]


ODD = {"split by zero-width": split_by_zero_width, "wrapped": wrapped_by_a_terminal, "in a long line": after_much_text}
BARE: dict[str, Maker] = {
    "letters and digits": drawn(ALNUM, 32, 40, 43, 48, 64),
    "base64": b64(24, 30, 32, 48, 64),
    "base64 for addresses": b64(24, 30, 32, 48, 64, url=True),
    "small letters and digits": drawn(string.ascii_lowercase + string.digits, 32, 40, 50),
    "base32": drawn(string.ascii_uppercase + "234567", 32, 52),
}
AROUND = ("x {} y", '"{}"', "value={};", "> {}\n", "({})", "{}")
# The text before a value that somebody wrote as a secret, real or not; prefixes of such values; and what is no value.
BEFORE_VALUE = re.compile(
    r"(?:pass\w*|pwd|secret\w*|token|key\w*|credential\w*|auth\w*|cookie|-u|bearer|basic)"
    r"[\w.-]{0,40}[\\\"'`\]]*\s{0,3}(?:[:=]{1,2}>?|=>|\s|>)\s{0,3}(?:basic |bearer |token )?[\\\"'`]*$|://[^\s/]*:?$",
    re.IGNORECASE,
)
PREFIX = re.compile(r"(?:gh[opsu]_|github_pat_|sk-|xox|AKIA|ASIA|glpat-|gs_|hf_|npm_|eyJ|-----BEGIN)")
NO_VALUE = re.compile(
    r"[0-9a-f-]{7,}|[\w./-]*/[\w./-]+\.\w{1,5}|\w+(?:\.\w+)+(?:\(.*)?|.*\b(?:const|await|return|function)\b.*|"
    r"[a-z]+(?: [a-z]+)+|[A-Z]?[a-z]+(?:[A-Z][a-z0-9]+)+",
)


def is_hidden(values: list[str], text: str) -> bool:
    """Whether no six characters in a row of any value are in the text."""
    pieces = (
        value[at : at + LEFT_CHARACTERS] for value in values for at in range(max(len(value) - LEFT_CHARACTERS + 1, 1))
    )
    return not any(piece in text for piece in pieces)


def hidden_shares(count: int) -> tuple[dict[str, float], dict[str, float]]:
    """The share of values of each shape that are hidden: of named ones and of bare ones."""
    rng = Random(SEED)
    named, bare = {}, {}
    for name, (place, makers) in NAMED.items():
        hidden = 0
        for _ in range(count):
            values = [maker(rng) for maker in makers]
            hidden += is_hidden(values, redact("first line\n" + place.format(*values) + "\nlast line"))
        named[name] = hidden / count
    for name, make in ODD.items():
        texts = [make(rng) for _ in range(count)]
        named[name] = sum(is_hidden(values, redact(text)) for text, values in texts) / count
    for name, maker in BARE.items():
        hidden = 0
        for _ in range(count):
            value = maker(rng)
            hidden += is_hidden([value], redact(rng.choice(AROUND).format(value)))
        bare[name] = hidden / count
    return named, bare


def transcript_texts(max_characters: int) -> Iterator[tuple[str, str]]:
    """The file name and text of each line that readers of transcripts see, of the half that the rules were not fitted
    on.
    """
    data = scratch.data_folder()
    folder = data / "transcripts" if (data / "transcripts").is_dir() else scratch.ROOT / "tests" / "data"
    for path in sorted(folder.rglob("*")):
        half = int(hashlib.sha256(path.name.encode()).hexdigest(), 16) % 2
        if not path.is_file() or path.suffix == ".csv" or (half == 0 and folder.name == "transcripts"):
            continue
        try:
            with path.open("rb") as file:
                for line in raw_lines(read(file, path.name)):
                    yield path.name, line.head
                    yield path.name, line.stored_text
                    max_characters -= len(line.head) + len(line.stored_text)
        except (UnknownFormat, EmptyTranscript):
            continue
        if max_characters <= 0:
            return


def document_texts(max_bytes: int) -> Iterator[tuple[str, str]]:
    """The name and text of files without secrets: up to so many bytes each of this repository, of Django's
    translations and of its code.
    """
    libraries = Path(django.__file__).parent
    languages = ("de", "fr", "es", "pt", "pt_BR", "ru", "zh_Hans")
    for root, patterns in (
        (scratch.ROOT, ("*.md", "docs/**/*.md", "grading/**/*.py", "bandit/**/*.py", "templates/**/*.html")),
        (libraries, [f"**/locale/{language}/LC_MESSAGES/*.po" for language in languages]),
        (libraries, ("**/*.py",)),
    ):
        remaining = max_bytes
        for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
            remaining -= path.stat().st_size
            if remaining > 0:
                yield path.name, path.read_text(errors="replace")


@dataclass(frozen=True, kw_only=True)
class HiddenSpans:
    """How many megabytes were read and how many a second; and how many spans in a megabyte were hidden, falsely or as a
    value that somebody wrote as a secret.
    """

    mb: float
    mb_s: float
    false_per_mb: float
    given_per_mb: float


def count_hidden_spans(texts: Iterable[tuple[str, str]], *, may_have_values: bool, listed: bool) -> HiddenSpans:
    """`may_have_values`: otherwise every hidden span is a false one. `listed`: print them all."""
    characters = false = values = 0
    seconds = 0.0
    for name, text in texts:
        started = time.process_time()
        spans = find_secrets(text)
        seconds += time.process_time() - started
        characters += len(text)
        for span in spans:
            value, before = text[span.start : span.end], text[max(span.start - 80, 0) : span.start]
            is_value = bool(PREFIX.match(value) or BEFORE_VALUE.search(before)) and not NO_VALUE.fullmatch(value)
            is_value = is_value and may_have_values
            values, false = values + is_value, false + (not is_value)
            if listed:
                print("value" if is_value else "FALSE", name[-24:], repr(before[-40:]), repr(value[:70]))
    mb = max(characters, 1) / 1e6
    return HiddenSpans(
        mb=round(mb, 2),
        mb_s=round(mb / max(seconds, 1e-9), 2),
        false_per_mb=round(false / mb, 2),
        given_per_mb=round(values / mb, 2),
    )


def time_hostile_texts(size: int) -> dict[str, float]:
    """Seconds to redact texts of `size` characters that are made to be slow, by the part that they repeat."""
    rng = Random(1)
    parts = (
        'key="', "password: ", "token" * 3, "-----BEGIN PRIVATE KEY-----", "a" * 31 + " ", '\\\\\\"', "=" * 40, "://a:",
        "authorization: basic ", "\u200b", "\x1b[", "eyJ", "sk-a", "cookie: a=", "<token>", "the password for ", "Aa1/",
        "-b '", "mysql -p", "aws key ", 'secret="', "api_key=" + "a." * 30 + "(", "A" * 600,
        "".join(rng.choices(ALNUM, k=200)) + "\n",
    )  # fmt: skip
    seconds = {}
    for part in parts:
        text = (part * (size // len(part) + 1))[:size]
        started = time.perf_counter()
        redact(text)
        seconds[part] = time.perf_counter() - started
    return seconds


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="2 MB of transcripts, 200 kB of hostile text", smoke="20 values of each shape, 200 kB"
    )
    parser.add_argument("--spans", action="store_true", help="list every hidden span of the transcripts and documents")
    options = parser.parse_args()
    count, max_characters, hostile_size = {
        Size.SMOKE: (20, 200_000, 20_000),
        Size.QUICK: (2000, 2_000_000, 200_000),
        Size.FULL: (2000, 10**9, 1_000_000),
    }[options.size]
    named, bare = hidden_shares(count)
    print(
        scratch.table(
            ["values", "hidden"], [[name, scratch.percent(share, 2)] for name, share in (named | bare).items()]
        )
    )
    seconds = time_hostile_texts(hostile_size)
    slowest = max(seconds, key=lambda part: seconds[part])
    print(f"hostile text of {hostile_size:,} characters: at most {seconds[slowest]:.2f} s, repeating {slowest[:40]!r}")
    transcripts = count_hidden_spans(transcript_texts(max_characters), may_have_values=True, listed=options.spans)
    documents = count_hidden_spans(document_texts(max_characters), may_have_values=False, listed=options.spans)
    figures = {
        "named_least": round(min(named.values()), 5),
        "bare_least": round(min(bare.values()), 5),
        "hostile_s": round(seconds[slowest], 2),
        "hostile_mb": hostile_size / 1e6,
        "kinds": len(named),
        "read_mb": transcripts.mb,
        "false_per_mb": max(transcripts.false_per_mb, documents.false_per_mb),
        "given_per_mb": transcripts.given_per_mb,
        "mb_s": transcripts.mb_s,
        "documents_mb": documents.mb,
        "documents_false_per_mb": documents.false_per_mb,
        "documents_mb_s": documents.mb_s,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
