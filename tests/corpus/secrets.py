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

# What people type into a shell, and the lines of files that name no secret. A value has capitals, small letters and a
# digit, but need not be long.
_COMMANDS = {
    "pgpass": "db.example.test:5432:shop:app:{}",
    "pgpass with stars": "*:*:*:postgres:{}",
    "pgpass by echo": "echo 'localhost:5432:*:app:{}' > ~/.pgpass",
    "docker login": "docker login -u bob -p {} registry.example.test",
    "docker login with = and quotes": "docker login --username=bob --password='{}'",
    "docker login without a space": "podman login -p{} -u bob quay.example.test",
    "docker login over two lines": "docker login \\\n    -u bob \\\n    -p {}",
    "htpasswd": "htpasswd -b /etc/nginx/users bob {}",
    "htpasswd that creates": "htpasswd -cbB -C 10 ./users  'bob'  '{}'",
    "htpasswd to the screen": "htpasswd -nbB bob {} | tee users",
    "chpasswd": "echo bob:{} | sudo chpasswd",
    "chpasswd quoted": "RUN echo 'root:{}' | chpasswd",
    "chpasswd from a string": 'chpasswd <<< "bob:{}"',
    "chpasswd from lines": "chpasswd <<EOF\nbob:{}\nEOF",
    "password by a pipe": "echo -n '{}' | docker login -u bob --password-stdin",
    "password for sudo": "echo {} | sudo -S apt-get update",
    "mysql quoted": "mysql -uroot -p'{}' -h db shop",
    "mysqladmin": "mysqladmin -u root password '{}'",
    "mongo": "mongosh -u app -p {} --authenticationDatabase admin",
    "redis-cli": "redis-cli -h cache -a {} ping",
    "ldap": "ldapsearch -x -D cn=admin -w {} -b dc=example",
    "zip": "unzip -P {} backup.zip",
    "7z": "7z x -p{} backup.7z",
    "openssl": "openssl rsa -in a.pem -passin pass:{}",
    "keytool": "keytool -list -keystore a.jks -storepass {}",
    "smbclient": "smbclient //host/share -U bob%{}",
    "curl user, quoted": 'curl -s -u "bob:{}" https://example.test',
    "curl user with =": "curl --user=bob:{} https://example.test",
    "httpie": "http -a bob:{} example.test/api",
    "wget": "wget --http-user=bob --http-password={} https://example.test",
    "kubectl": "kubectl create secret generic db --from-literal=user-name={} --from-literal=port=1",
    "kubectl quoted": "kubectl -n a create secret generic db --from-literal='db-pass={}' --from-literal  \"x=y\"",
    "kubectl docker": "kubectl create secret docker-registry r --docker-username=bob --docker-password={}",
}
_SAID = {
    "pw said": "my pw: {}",
    "pw is": "the pw is {}",
    "pw is, in capitals": "THE PW IS {}",
    "pw =": "pw={}",
    "pw quoted": "my pw is '{}', keep it",
    "password's": "my password's {}",
    "pass =": "user = bob\npass = {}\n",
    "pass quoted": 'pass="{}"',
    "pass:": "user: bob\npass:   {}",
    "smtp pass": "smtp_pass={}",
    "smtp pass in capitals": "export SMTP_PASS={}",
    "smtp pass in camel case": 'smtpPass: "{}",',
    "Passwort:": "Passwort: {}",
    "Passwort ist": "das Passwort ist {}.",
    "Passwort lautet": "Das Passwort für die Datenbank lautet: {}",
    "Kennwort": "Kennwort = {}",
    "Kennwort ist": "unser neues Kennwort ist „{}“",
    "mot de passe :": "Mot de passe : {}",
    "mot de passe est": "le mot de passe de la base est {}",
    "mdp": "mdp: {}",
    "mdp, c'est": "mon mdp c'est {}",
    "contraseña:": "CONTRASEÑA: {}",
    "contraseña es": "la contraseña es {}",
    "contraseña de": "La contraseña de la base de datos es: {}",
    "clave": "mi clave es {}",
    "senha:": "senha: {}",
    "senha é": "a senha do banco é {}",
    "palavra-passe": "A palavra-passe é {}",
    "пароль:": "Пароль: {}",
    "пароль в середине": "вот пароль: {} и всё",
    "пароль —": "пароль от базы — {}",
    "мой пароль": "мой пароль {}",
    "密码:": "密码: {}",
    "密码：": "数据库密码：{}",
    "密码是": "我的密码是{}。",
    "密码为": "登录密码为 {} 请保密",
    "口令": "口令是：{}",
    "Passwort in json": '{{"Passwort": "{}"}}',
    "senha in yaml": "banco:\n  senha: {}\n",
}
_PINS = {
    "PIN is": "my PIN is {}",
    "PIN:": "PIN: {}",
    "PIN code": "the pin code for the door is {}.",
    "pin=": "card_pin={}",
    "pin in json": '{{"pin": "{}"}}',
    "PIN in German": "Meine PIN lautet {}",
    "PIN in French": "mon code PIN est le {}",
    "ПИН": "пин-код: {}",
}


ALL |= {
    **{name: _named(around, ALNUM, 12) for name, around in _COMMANDS.items()},
    **{name: _named(around, ALNUM, 12) for name, around in _SAID.items()},
    **{name: Secret(around.format("4821"), ("4821",)) for name, around in _PINS.items()},
    "wandb": _named("wandb login {}", HEX, 40),
    "wandb again": _named("wandb login --relogin  --host=https://wandb.example.test {}", HEX, 40),
    "wandb in python": _named('wandb.login(key="{}")', HEX, 40),
    "yescrypt": _pair("root:$y$j9T${}${}:19700:0:99999:7:::", (ALNUM, 22), (ALNUM, 43)),
    "bcrypt": _named("bob:$2b$12${}", ALNUM, 53),
    "bcrypt of PHP": _named("bob:$2y$05${}", ALNUM + "./", 53),
    "bcrypt in compose": _named('- "traefik.users=bob:$$2y$$05$${}"', ALNUM, 53),
    "sha512-crypt": _pair("root:$6${}${}:19700:0:99999:7:::", (ALNUM, 16), (ALNUM, 86)),
    "sha512-crypt with rounds": _pair("password: $6$rounds=5000${}${}", (ALNUM, 16), (ALNUM, 86)),
    "sha256-crypt": _pair("usermod -p '$5${}${}' bob", (ALNUM, 8), (ALNUM, 43)),
    "md5-crypt": _pair("bob:$apr1${}${}", (ALNUM, 8), (ALNUM, 22)),
    "argon2": _pair("$argon2id$v=19$m=65536,t=3,p=4${}${}", (B64, 22), (B64, 43)),
    "Django's hash": _pair("pbkdf2_sha256$1000000${}${}=", (ALNUM, 22), (B64, 43)),
    "ldap hash": _named("userPassword: {{SSHA}}{}", B64, 32),
    "vault of old": _named("export VAULT_TOKEN=s.{}", ALNUM, 24),
    "dotted secret": _pair("API_SECRET={}.{}", (ALNUM, 16), (ALNUM, 24)),
    "slack trigger": _named("https://hooks.slack.com/triggers/T0123/4567/{}", HEX, 32),
    "langsmith": _token("lsv2_pt_", HEX, 32),
    "brevo": _token("xkeysib-", HEX, 64),
    "sourcegraph": _token("sgp_", HEX, 40),
    "pulumi": _token("pul-", HEX, 40),
    "linear oauth": _token("lin_oauth_", HEX, 64),
    "cerebras": _token("csk-", LOWER, 48),
    "hubspot": _token("pat-na1-", HEX, 32),
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
    "types": "password: string\npin: false\npass: boolean;\npw?: string | undefined",
    "pass in code": "pass = True\npass: 12\nsecond_pass = pass + 1\nbypass = 0x1f\nPASS: test_login",
    "pw in prose": "the pw is wrong; my pw: none; the pass is valid until 2027; pw is required",
    "German": "Passwort vergessen? Das Passwort ist erforderlich. Passwort zurücksetzen, Kennwort: Pflichtfeld fehlt",
    "French": "mot de passe oublié, le mot de passe est requis, mot de passe : au moins huit signes",
    "Spanish": "la contraseña es obligatoria, contraseña olvidada, la clave es pública, palabra clave: ninguna aquí",
    "Portuguese": "a senha é obrigatória, esqueci a senha, senha: mínimo de oito letras",
    "Russian": "пароль обязателен, пароль: введите ещё раз, забыли пароль? пароль — это строка",
    "Chinese": "密码错误，密码是必填项，密码：请输入密码，忘记密码？",
    "working directory": "PWD=/home/bob/project\nOLDPWD=/tmp",
    "pins": "pin: 3.11.4 pin: 12 GPIO pin=17 pinned: 2024.1 pin: null spin: 4821",
    "ports": "docker run -p 8080:80 mysql -p; ssh -p 2222 bob@example.test; mkdir -p a/b; nc -l -p 4821",
    "stdin": "docker login -u bob --password-stdin < token.txt; echo $PW | docker login --password-stdin",
    "commands without a value": "docker login; wandb login; htpasswd -c f bob; chpasswd < list; mysql -p; sudo -S id",
    "variables": 'docker login -p "$PASS"; curl -u "$USER:$PW" x; mysql -p"${DB_PW}"; htpasswd -b f bob $PW',
    "config map": "kubectl create configmap app --from-literal=color=blue --from-literal=size=10",
    "addresses": "00:11:22:33:44:55 fe80::1 2001:0db8:85a3:0000:0000:8a2e:0370:7334 a.c:1234:56:error:unused",
    "dollars": "awk '{print $1$2$3}'; s/(a)(b)/$2$1$6/; echo $1$5; ${1}$6",
    "url of the manual": "postgres://user:password@host:5432/name https://user:pass@example.test",
    "hash names": "the password is hashed with bcrypt, the password is sha512, password: argon2id",
    "form": "change_password_form = AdminPasswordChangeForm\npassword1: SetPasswordField = self.fields",
    "words for a token": 'token = "is not"\nTOKEN: "tokens and keys"\nCODE = "password_reset_by_code"',
}
