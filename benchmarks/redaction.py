"""How much of what is secret is hidden, how much of what is not, and how long it takes.

Random values of each shape, in the places where sessions have them, go through `grading.redaction.redact` as every
screen, prompt and export does. One counts as hidden where no six characters in a row of it are left. `named` are those
that a name, a prefix or a sentence says are secrets, `bare` those of at least 32 characters that nothing does; of
hexadecimal ones the latter are left out, since a commit looks the same.

Hidden spans of real transcripts (GRADING_DATA_DIR, else `../shared/data` beside the checkout) are counted in the half
of the files that the rules were not fitted on (by the hash of the file's name). False are those that nobody wrote as
the value of a secret: hashes, ids, paths, code and prose, told by the span and what stands before it. Examples and
values of tests, such as `"password": "hunter2"`, are what the rules are to hide, and are counted apart.
`--spans` lists them all, to be looked at.

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
from collections.abc import Callable, Iterator
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

ROOT = Path(__file__).resolve().parent.parent
ALNUM = string.ascii_letters + string.digits
SYMBOLS = ALNUM + "!#$%&()*+,-./:;<=>?@[]^_{|}~"
Maker = Callable[[Random], str]


def drawn(alphabet: str, *lengths: int) -> Maker:
    return lambda rng: "".join(rng.choices(alphabet, k=rng.choice(lengths)))


def b64(*sizes: int, url: bool = False) -> Maker:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    return lambda rng: encode(rng.randbytes(rng.choice(sizes))).decode().rstrip("=" if url else "")


PASSWORD, TOKEN = drawn(ALNUM, 10, 12, 16, 20), drawn(ALNUM, 20, 24, 32, 40)
HEXES, URL = drawn("0123456789abcdef", 32, 40, 64), b64(18, 24, 32, 48, url=True)
BASE, STRONG = b64(12, 16, 24, 30, 32, 48), drawn(SYMBOLS, 12, 16, 20, 24)
# Each shape: the place, and what is drawn for each {}.
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
    """Where the pieces meet that the library's patterns are shown."""
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
# What stands where a person or a program gave a value for a secret, real or not: before it, and as it.
GIVEN = re.compile(
    r"(?:pass\w*|pwd|secret\w*|token|key\w*|credential\w*|auth\w*|cookie|-u|bearer|basic)"
    r"[\w.-]{0,40}[\\\"'`\]]*\s{0,3}(?:[:=]{1,2}>?|=>|\s|>)\s{0,3}(?:basic |bearer |token )?[\\\"'`]*$|://[^\s/]*:?$",
    re.IGNORECASE,
)
PREFIX = re.compile(r"(?:gh[opsu]_|github_pat_|sk-|xox|AKIA|ASIA|glpat-|gs_|hf_|npm_|eyJ|-----BEGIN)")
NO_VALUE = re.compile(
    r"[0-9a-f-]{7,}|[\w./-]*/[\w./-]+\.\w{1,5}|\w+(?:\.\w+)+(?:\(.*)?|.*\b(?:const|await|return|function)\b.*|"
    r"[a-z]+(?: [a-z]+)+|[A-Z]?[a-z]+(?:[A-Z][a-z0-9]+)+",
)


def is_hidden(values: list[str], told: str) -> bool:
    """Whether no six characters in a row are left of any of the values."""
    return not any(value[at : at + 6] in told for value in values for at in range(max(len(value) - 5, 1)))


def shares(count: int) -> tuple[dict[str, float], dict[str, float]]:
    """Of each shape the share that is hidden: of named ones and of bare ones."""
    rng = Random(20261122)
    named = {}
    for name, (place, makers) in NAMED.items():
        good = 0
        for _ in range(count):
            values = [maker(rng) for maker in makers]
            told = redact("first line\n" + place.format(*values) + "\nlast line")
            good += is_hidden(values, told)
        named[name] = good / count
    for name, make in ODD.items():
        made = [make(rng) for _ in range(count)]
        named[name] = sum(is_hidden(values, redact(text)) for text, values in made) / count
    bare = {}
    for name, maker in BARE.items():
        good = 0
        for _ in range(count):
            value = maker(rng)
            good += is_hidden([value], redact(rng.choice(AROUND).format(value)))
        bare[name] = good / count
    return named, bare


def texts(most: int) -> Iterator[tuple[Path, str]]:
    """What the transcripts' readers are shown, of the half that the rules were not fitted on."""
    data = scratch.data_folder()
    folder = data / "transcripts" if (data / "transcripts").is_dir() else ROOT / "tests" / "data"
    for path in sorted(folder.rglob("*")):
        half = int(hashlib.sha256(path.name.encode()).hexdigest(), 16) % 2
        if not path.is_file() or path.suffix == ".csv" or (half == 0 and folder.name == "transcripts"):
            continue
        try:
            with path.open("rb") as file:
                for line in raw_lines(read(file, path.name)):
                    yield path, line.head
                    yield path, line.told
                    most -= len(line.head) + len(line.told)
        except (UnknownFormat, EmptyTranscript):
            continue
        if most <= 0:
            return


def spans(most: int, *, listed: bool) -> dict[str, float]:
    """How many spans a megabyte are hidden in real transcripts, how many of them falsely, and how fast."""
    size = false = given = 0
    seconds = 0.0
    for path, text in texts(most):
        began = time.process_time()
        found = find_secrets(text)
        seconds += time.process_time() - began
        size += len(text)
        for span in found:
            value, before = text[span.start : span.end], text[max(span.start - 80, 0) : span.start]
            is_given = bool(PREFIX.match(value) or GIVEN.search(before)) and not NO_VALUE.fullmatch(value)
            given, false = given + is_given, false + (not is_given)
            if listed:
                print("given" if is_given else "FALSE", path.name[-24:], repr(before[-40:]), repr(value[:70]))
    mb = max(size, 1) / 1e6
    return {
        "read_mb": round(mb, 2),
        "false_per_mb": round(false / mb, 2),
        "given_per_mb": round(given / mb, 2),
        "mb_s": round(mb / max(seconds, 1e-9), 2),
    }


def documents(most: int) -> Iterator[Path]:
    """Files without secrets, of up to so many bytes each from this repository and from Django."""
    libraries = Path(django.__file__).parent
    languages = [
        f"locale/{language}/LC_MESSAGES/*.po" for language in ("de", "fr", "es", "pt", "pt_BR", "ru", "zh_Hans")
    ]
    for root, patterns in (
        (ROOT, ("*.md", "docs/**/*.md", "grading/**/*.py", "bandit/**/*.py", "templates/**/*.html")),
        (libraries, [f"**/{pattern}" for pattern in languages]),
        (libraries, ("**/*.py",)),
    ):
        left = most
        for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
            left -= path.stat().st_size
            if left > 0:
                yield path


def in_documents(most: int, *, listed: bool) -> dict[str, float]:
    """How many spans a megabyte are hidden in documentation and code, all of them falsely, and how fast."""
    size = false = 0
    seconds = 0.0
    for path in documents(most):
        text = path.read_text(errors="replace")
        began = time.process_time()
        found = find_secrets(text)
        seconds += time.process_time() - began
        size, false = size + len(text), false + len(found)
        for span in found if listed else ():
            print(
                "FALSE",
                path.name,
                repr(text[max(span.start - 40, 0) : span.start]),
                repr(text[span.start : span.end][:70]),
            )
    mb = max(size, 1) / 1e6
    return {
        "documents_mb": round(mb, 2),
        "documents_false_per_mb": round(false / mb, 2),
        "documents_mb_s": round(mb / max(seconds, 1e-9), 2),
    }


def hostile(size: int) -> dict[str, float]:
    """Seconds for texts made to be slow, of `size` characters, by what they repeat; each should take about as long."""
    rng = Random(1)
    parts = (
        'key="', "password: ", "token" * 3, "-----BEGIN PRIVATE KEY-----", "a" * 31 + " ", '\\\\\\"', "=" * 40, "://a:",
        "authorization: basic ", "\u200b", "\x1b[", "eyJ", "sk-a", "cookie: a=", "<token>", "the password for ", "Aa1/",
        "-b '", "mysql -p", "aws key ", 'secret="', "api_key=" + "a." * 30 + "(", "A" * 600,
        "".join(rng.choices(ALNUM, k=200)) + "\n",
    )  # fmt: skip
    taken = {}
    for part in parts:
        text = (part * (size // len(part) + 1))[:size]
        began = time.perf_counter()
        redact(text)
        taken[part] = time.perf_counter() - began
    return taken


def main() -> None:
    parser = scratch.parser(
        __doc__ or "", quick="2 MB of transcripts, 200 kB of hostile text", smoke="20 values a shape, 200 kB"
    )
    parser.add_argument("--spans", action="store_true", help="list every hidden span of the transcripts")
    args = parser.parse_args()
    count, most, size = {
        Size.SMOKE: (20, 200_000, 20_000),
        Size.QUICK: (2000, 2_000_000, 200_000),
        Size.FULL: (2000, 10**9, 1_000_000),
    }[args.size]
    named, bare = shares(count)
    for name, share in {**named, **bare}.items():
        print(f"{name:32} {share:8.2%}")
    taken = hostile(size)
    slowest = max(taken, key=lambda part: taken[part])
    print(f"hostile text of {size:,} characters: at most {taken[slowest]:.2f} s, repeating {slowest[:40]!r}")
    told = {
        "named_least": round(min(named.values()), 5),
        "bare_least": round(min(bare.values()), 5),
        "hostile_s": round(taken[slowest], 2),
        "hostile_mb": size / 1e6,
        "kinds": len(named),
        **spans(most, listed=args.spans),
        **in_documents(most, listed=args.spans),
    }
    told["false_per_mb"] = max(told["false_per_mb"], told["documents_false_per_mb"])
    print(json.dumps(told))


if __name__ == "__main__":
    main()
