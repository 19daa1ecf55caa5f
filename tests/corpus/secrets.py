"""Secrets of the common kinds, generated from a seed (none was ever anybody's), and the places where a transcript has
them; and texts that hold none and must survive untouched.

`ALL` maps a name to a `Secret`: the text it comes in and the parts of it that may not leave the machine.
"""

import base64
import json
import string
from dataclasses import dataclass
from random import Random

LETTERS, DIGITS = string.ascii_letters, string.digits
ALNUM, LOWER, UPPER = LETTERS + DIGITS, string.ascii_lowercase + DIGITS, string.ascii_uppercase + DIGITS
HEX, B64, URL = "0123456789abcdef", ALNUM + "+/", ALNUM + "-_"
_rng = Random(20260331)


@dataclass(frozen=True)
class Secret:
    """`text` is what stands in the transcript; `parts` are the secret in it, each of at least six characters."""

    text: str
    parts: tuple[str, ...]


def _some(alphabet: str, count: int) -> str:
    """Random characters with a digit and a letter among them, as keys have."""
    return "".join(_rng.choices(alphabet, k=count - 2)) + "7" + ("e" if "e" in alphabet else "E")


def _token(prefix: str, alphabet: str, count: int, around: str = "{}") -> Secret:
    body = _some(alphabet, count)
    return Secret(around.format(prefix + body), (body,))


def _named(around: str, alphabet: str = ALNUM, count: int = 24) -> Secret:
    return _token("", alphabet, count, around)


def _b64(count: int) -> str:
    return base64.b64encode(_rng.randbytes(count)).decode()


def _pem(kind: str, *, lines: int = 12, newline: str = "\n", end: bool = True, head: str = "") -> Secret:
    body = [_b64(48) for _ in range(lines)] + [_b64(20)]
    begin, over = f"-----BEGIN {kind}-----", [f"-----END {kind}-----"] * end
    return Secret(newline.join([begin, *([head, ""] if head else []), *body, *over]), tuple(body))


def _jwt() -> Secret:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims, signature = part({"sub": _some(ALNUM, 20), "exp": 1774958640}), _some(URL, 43)
    return Secret(f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{claims}.{signature}", (claims, signature))


def _basic() -> str:
    return base64.b64encode(f"deploy:{_some(ALNUM, 20)}".encode()).decode()


def _basic_header() -> Secret:
    value = _basic()
    return Secret(f"curl -H 'Authorization: Basic {value}' https://example.test/api", (value,))


def _docker() -> Secret:
    value = _basic()
    return Secret(f'{{"auths": {{"registry.example.test": {{"auth": "{value}"}}}}}}', (value,))


def _pair(around: str, *alphabets: tuple[str, int]) -> Secret:
    parts = tuple(_some(alphabet, count) for alphabet, count in alphabets)
    return Secret(around.format(*parts), parts)


def _gcp() -> Secret:
    key = _pem("PRIVATE KEY", newline="\\n")
    text = f'{{"type": "service_account", "private_key": "{key.text}\\n", "client_email": "a@b.test"}}'
    return Secret(text, key.parts)


def _only_the_end() -> Secret:
    key = _pem("RSA PRIVATE KEY", lines=4)
    return Secret("$ tail -6 id_rsa\n" + key.text.split("\n", 1)[1], key.parts)


def _diff_pem() -> Secret:
    key = _pem("EC PRIVATE KEY", lines=3)
    return Secret("\n".join(f"+{line}" for line in key.text.split("\n")), key.parts)


def _netrc() -> Secret:
    return _named("machine api.example.test login bob password {}", count=14)


def _continued() -> Secret:
    first, second = _some(ALNUM, 18), _some(ALNUM, 18)
    return Secret(f"export GH_TOKEN=ghp_{first}\\\n{second}", (first, second))


def _coloured() -> Secret:
    body = _some(ALNUM, 36)
    return Secret(f"\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[K{body}", (body,))


def _kube() -> Secret:
    token, key = _some(URL, 40), _b64(120)
    return Secret(f"users:\n- name: dev\n  user:\n    token: {token}\n    client-key-data: {key}", (token, key))


ALL: dict[str, Secret] = {
    "anthropic": _token("sk-ant-api03-", URL, 93),
    "anthropic admin": _token("sk-ant-admin01-", URL, 93),
    "openai": _token("sk-", ALNUM, 48),
    "openai project": _token("sk-proj-", URL, 120),
    "openrouter": _token("sk-or-v1-", HEX, 64),
    "github classic": _token("ghp_", ALNUM, 36),
    "github fine-grained": _token("github_pat_", ALNUM, 82),
    "github app": _token("ghs_", ALNUM, 36),
    "github oauth": _token("gho_", ALNUM, 36),
    "gitlab": _token("glpat-", URL, 20),
    "gitlab runner": _token("glrt-", URL, 20),
    "slack bot": _token("xoxb-123456789012-1234567890123-", ALNUM, 24),
    "slack app": _token("xapp-1-A012345-", LOWER, 40),
    "slack webhook": _token("https://hooks.slack.com/services/T0123/B0123/", ALNUM, 24),
    "aws id": _token("AKIA", UPPER, 16),
    "aws temporary id": _token("ASIA", UPPER, 16),
    "aws secret": _named("aws_secret_access_key = {}", B64, 40),
    "aws secret in the environment": _named("export AWS_SECRET_ACCESS_KEY={}", B64, 40),
    "aws configure": _named("AWS Secret Access Key [None]: {}", B64, 40),
    "aws sts": _pair('{{"Credentials": {{"SecretAccessKey": "{}", "SessionToken": "{}"}}}}', (B64, 40), (B64, 300)),
    "gcp service account": _gcp(),
    "gcp api key": _token("AIza", URL, 35),
    "gcp oauth token": _token("ya29.", URL, 120),
    "gcp oauth secret": _token("GOCSPX-", URL, 28),
    "azure storage": _named(
        "DefaultEndpointsProtocol=https;AccountName=dev;AccountKey={}==;EndpointSuffix=core.windows.net", B64, 86
    ),
    "azure service bus": _named("Endpoint=sb://x.test/;SharedAccessKeyName=root;SharedAccessKey={}=", B64, 43),
    "azure signature": _named("https://dev.blob.example.test/c/f?sv=2024-11-04&sig={}%3D&se=2026", ALNUM, 43),
    "stripe": _token("sk_live_", ALNUM, 24),
    "stripe test": _token("sk_test_", ALNUM, 24),
    "stripe webhook": _token("whsec_", ALNUM, 32),
    "twilio": _pair("TWILIO_ACCOUNT_SID=AC{}\nTWILIO_AUTH_TOKEN={}", (HEX, 32), (HEX, 32)),
    "sendgrid": _pair("SG.{}.{}", (URL, 22), (URL, 43)),
    "mailchimp": _named("{}-us12", HEX, 32),
    "square": _token("sq0csp-", URL, 43),
    "npm": _token("npm_", ALNUM, 36),
    "npmrc": _named("//registry.example.test/:_authToken={}", HEX, 36),
    "pypi": _token("pypi-AgEIcHlwaS5vcmc", URL, 120),
    "docker hub": _token("dckr_pat_", URL, 27),
    "hugging face": _token("hf_", ALNUM, 34),
    "groq": _token("gsk_", ALNUM, 52),
    "vault": _token("hvs.", ALNUM, 90),
    "digital ocean": _token("dop_v1_", HEX, 64),
    "shopify": _token("shpat_", HEX, 32),
    "telegram bot": _token("8123456789:", URL, 35),
    "discord bot": _pair("MTE{}.{}.{}", (ALNUM, 21), (URL, 6), (URL, 27)),
    "discord webhook": _token("https://discord.com/api/webhooks/1234567890/", URL, 68),
    "json web token": _jwt(),
    "rsa key": _pem("RSA PRIVATE KEY"),
    "encrypted rsa key": _pem("RSA PRIVATE KEY", head="Proc-Type: 4,ENCRYPTED"),
    "ec key": _pem("EC PRIVATE KEY", lines=3),
    "openssh key": _pem("OPENSSH PRIVATE KEY", lines=30),
    "pkcs8 key": _pem("PRIVATE KEY"),
    "key whose end is missing": _pem("RSA PRIVATE KEY", end=False),
    "key whose beginning is missing": _only_the_end(),
    "key in a diff": _diff_pem(),
    "ssh key in json": _pem("OPENSSH PRIVATE KEY", newline="\\n"),
    "pgp block": _pem("PGP PRIVATE KEY BLOCK", head="Version: GnuPG v2"),
    "database url": _named("DATABASE_URL=postgres://app:{}@db.example.test:5432/app", count=12),
    "redis url": _named("redis://:{}@cache.example.test:6379/0", count=16),
    "mongodb url": _named("mongodb+srv://admin:{}@cluster0.example.test/x", count=16),
    "basic-auth url": _named("git clone https://bob:{}@example.test/repo.git", count=16),
    "token in a url": _named("git clone https://{}@example.test/repo.git", count=40),
    "netrc": _netrc(),
    "dotenv": _named("SECRET_KEY='{}'", count=50),
    "dotenv password": _named("DB_PASSWORD={}", count=10),
    "lower-case name": _named("db_password = {}", count=10),
    "upper-case name": _named("ADMIN_PASSWORD: {}", count=10),
    "camel-case name": _named('const clientSecret = "{}";'),
    "named argument": _named("connect(host='db', password='{}')", count=10),
    "json field": _named('{{"user": "bob", "password": "{}"}}', count=10),
    "escaped json field": _named('"{{\\"user\\": \\"bob\\", \\"api_key\\": \\"{}\\"}}"'),
    "ruby hash": _named(":api_key => '{}'"),
    "go": _named('apiKey := "{}"'),
    "yaml": _named("  password: {}", count=12),
    "terraform": _named('db_password = "{}"', count=14),
    "docker config": _docker(),
    "kube config": _kube(),
    "bearer header": _named('curl -H "Authorization: Bearer {}" https://example.test/v1', URL, 40),
    "basic header": _basic_header(),
    "token header": _named("Authorization: token {}", HEX, 40),
    "api key header": _named("curl -H 'x-api-key: {}' https://example.test", ALNUM, 32),
    "python header": _named('headers = {{"Authorization": "Bearer {}"}}', URL, 40),
    "cookie": _named("Cookie: theme=dark; sessionid={}", LOWER, 32),
    "set cookie": _named("Set-Cookie: session={}; HttpOnly; Path=/", LOWER, 32),
    "curl cookie": _named("curl -b 'sessionid={}' https://example.test", LOWER, 32),
    "curl user": _named("curl -u deploy:{} https://example.test", count=14),
    "option": _named("tool login --password {}", count=12),
    "option with a token": _named("tool login --auth-token {}", count=30),
    "mysql": _named("mysqldump -u root -p{} shop", count=12),
    "sshpass": _named("sshpass -p '{}' ssh bob@example.test", count=12),
    "sql": _named("CREATE USER app IDENTIFIED BY '{}'", count=12),
    "postgres environment": _named("PGPASSWORD={} psql -h db", count=12),
    "refresh token": _named('"refresh_token": "{}"', URL, 60),
    "split by a line continuation": _continued(),
    "coloured by grep": _coloured(),
    "after an escaped line break": _token("done\\nsk-proj-", URL, 60),
}

# --- what must survive ------------------------------------------------------------------------------------------

_IMAGE = _b64(3000)
_COMMIT, _FILE_HASH = _some(HEX, 40), _some(HEX, 64)

HARMLESS: dict[str, str] = {
    "commit": f"commit {_COMMIT}\nAuthor: Bob\n    Fix the token count",
    "commit output": "[main 4c1e9b2] Send a failed call once\n 1 file changed, 2 insertions(+)",
    "log": "4c1e9b2 (HEAD -> main) Rotate the secret key setting\ndeadbee Add password reset page",
    "diff header": f"index {_COMMIT[:7]}..{_COMMIT[7:14]} 100644\n--- a/auth/token.py\n+++ b/auth/token.py",
    "uuid": "session 550e8400-e29b-41d4-a716-446655440000 resumed",
    "session id": '"sessionId": "0a1b2c3d-0000-4000-8000-aabbccddeeff", "uuid": "11111111-2222-4333-8444-555555555555"',
    "tool id": "toolu_01A09q90qw90lq917835lq9 call_Zk3fJd8sLq2mNb7vXc1pRt6y msg_01XFDUDYJgAACzvnptvVoYEL",
    "file hash": f"{_FILE_HASH}  dist/app.tar.gz",
    "named hash": f"prompt_sha256={_FILE_HASH} token_hash: {_FILE_HASH}",
    "lock file": f"integrity sha512-{_b64(64)}\n    --hash=sha256:{_FILE_HASH}",
    "image": f"data:image/png;base64,iVBORw0KGgo{_IMAGE}",
    "test id": "tests/test_tokens.py::test_password_is_hashed[argon2-0] PASSED [ 12%]",
    "failed test": "FAILED tests/auth/test_secret.py::TestSecret::test_key[AKIA] - AssertionError: password != hash",
    "location": "src/password.py:123:45: E501 line too long\ngrading/secret.py:12: error: Name 'token' is not defined",
    "annotation": "def login(password: str, token: Optional[str] = None, *, secret: SecretStr) -> Token:",
    "call": "token = get_token(request)\npassword = getpass.getpass()\nsecret = secrets.token_hex(32)",
    "attribute": "api_key=settings.ANTHROPIC_API_KEY, password=self.password, token=job.lease_token",
    "environment": 'api_key = os.environ["API_KEY"]\npassword=${DB_PASSWORD}\nTOKEN=$(cat t)\nsecret: {{ vault }}',
    "github action": "token: ${{ secrets.GITHUB_TOKEN }}",
    "placeholder": "API_KEY=<your key> password: ******** token=xxxxxxxx",
    "usage": "input_tokens=18234 output_tokens: 512 max_tokens: 4096 total_tokens=1234567890",
    "limits": "anthropic-ratelimit-input-tokens-remaining: 29000",
    "prose": "The password is required: users forget their token, and the secret: patience.",
    "bearer prose": "It sends a bearer token; bearer authentication is documented.",
    "class names": "<div class='sk-toggleable__content sk-estimator-doc-link fitted'>",
    "identifiers": "hf_hub_download npm_config_registry task_management_system_v2 risk-assessment-2026",
    "model names": "claude-sonnet-4-5-20250929 gpt-5.1-codex-max xai-grok-4-fast-reasoning pplx-70b-online",
    "url": "https://example.test:8443/path?token_type=bearer&page=2 git@example.test:bob/repo.git ssh://git@example.test/x",
    "mention in a path": "http://localhost:8000/@alice https://example.test:8443/x?y=@z",
    "scp": "scp build.tar bob@example.test:/srv/www docker run -u 1000:1000 app",
    "key headers": "grep -c 'BEGIN RSA PRIVATE KEY' tests/data/*.pem\nssh-ed25519 is the key type",
    "public certificate": f"-----BEGIN CERTIFICATE-----\n{_b64(48)}\n{_b64(48)}\n-----END CERTIFICATE-----",
    "time": "2026-03-31T11:04:00.000Z 12345678:12:00 1774958640:ok",
    "path": "secret_file: /run/secrets/db_password password: /etc/app/password.txt key_path=~/.ssh/id_ed25519",
    "version": "detect-secrets==1.5.0 token-bucket@2.1.3 cookiecutter: 2.6.0 passlib-1.7.4-py2.py3-none-any.whl",
    "css": "--token-color-keyword: #ff7b72; grid-auth: auto",
    "git": "git checkout -b fix/password-reset && git push -u origin fix/password-reset",
    "constants": 'SESSION_KEY = "_auth_user_id"\ncreate(name, password=password)\npass `api_key=`, `token=` or none',
    "sql": "ALTER TABLE users ADD COLUMN password_hash text; SELECT token_count FROM usage",
}
