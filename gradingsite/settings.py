"""The site's settings: one file, read from the environment, failing loudly. Every variable is in docs/configure.md."""

import os
import secrets
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import SimpleLazyObject

from gradingsite import broker
from gradingsite.chance_key import chance_key
from gradingsite.privacy import keep_private

BASE_DIR = Path(__file__).resolve().parent.parent


def env(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def env_number(name: str, default: float, *, low: float, high: float) -> float:
    """A number from the environment. Raises ImproperlyConfigured with what was expected and what came."""
    text = env(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise ImproperlyConfigured(f"Unexpected value {name}={text!r}, use a number from {low:g} to {high:g}")
    return value


def env_int(name: str, default: int, *, low: int, high: int) -> int:
    return int(env_number(name, default, low=low, high=high))


def env_bool(name: str, *, default: bool) -> bool:
    text = env(name, "yes" if default else "no").lower()
    if text not in {"yes", "no", "true", "false", "1", "0", "on", "off"}:
        raise ImproperlyConfigured(f"Unexpected value {name}={text!r}, use yes or no")
    return text in {"yes", "true", "1", "on"}


def env_url(name: str) -> str:
    """An http or https address from the environment, or nothing."""
    text = env(name)
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname):
        # Not the text itself: such addresses often hold a secret.
        raise ImproperlyConfigured(f"Unexpected value of {name}, use an address like https://host/path")
    return text


def env_list(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in env(name, default).split(",") if part.strip()]


def env_networks(name: str) -> list[str]:
    """Addresses and networks, as 10.0.0.0/8, from the environment."""
    try:
        return [str(ip_network(part)) for part in env_list(name)]
    except ValueError as error:
        raise ImproperlyConfigured(
            f"Unexpected value {name}={env(name)!r}, use addresses or networks like 10.0.0.0/8: {error}"
        ) from None


# Everything the site writes lives here: database, evidence, broker, secrets.
STATE_DIR = Path(env("GRADINGSITE_STATE", str(BASE_DIR / "var"))).resolve()
keep_private(STATE_DIR)


def generated_secret(path: Path) -> str:
    """The site's own secret key, made on first use and readable by its owner only."""
    if path.exists():
        return path.read_text().strip()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(50))
    except FileExistsError:
        pass
    return path.read_text().strip()


# What is too large for memory on its way in; emptied when the site starts.
TEMP_DIR = STATE_DIR / "tmp"
TEMP_DIR.mkdir(parents=True, exist_ok=True)
# What draws are made with (`bandit.chance`). Not the secret key, which may be changed at any time.
CHANCE_KEY = chance_key(Path(env("CHANCE_KEY_FILE", str(STATE_DIR / "chance.key"))))
SECRET_KEY = env("SECRET_KEY") or generated_secret(STATE_DIR / "secret_key")
# Earlier values of SECRET_KEY: what was sealed or signed with them is still read.
SECRET_KEY_FALLBACKS = env_list("SECRET_KEY_FALLBACKS")
DEBUG = env_bool("DEBUG", default=False)
HOST = env("HOST", "127.0.0.1")
PORT = env_int("PORT", 8000, low=1, high=65_535)
WEB_CONCURRENCY = env_int("WEB_CONCURRENCY", 2, low=1, high=64)
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
# Addresses and networks whose X-Forwarded-For is believed.
TRUSTED_PROXIES = env_networks("TRUSTED_PROXIES")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
# Behind a TLS proxy: cookies travel on https only and the forwarded scheme is believed.
HTTPS = env_bool("HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS, SECURE_SSL_REDIRECT = (31_536_000, True) if HTTPS else (0, False)
# Cookies know no port: two sites on one machine would log each other out.
SESSION_COOKIE_NAME = f"sessionid_{PORT}"
CSRF_COOKIE_NAME = f"csrftoken_{PORT}"
# What watches the site from this machine speaks no TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz/", r"^metrics$"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SITE_URL = env("SITE_URL")

INSTALLED_APPS = [
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "axes",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "ninja",
    # Ours last: what they do after a migration (roles) needs the permissions that auth makes then.
    "bandit",
    "grading",
]

MIDDLEWARE = [
    "gradingsite.telemetry.name_requests",
    "gradingsite.unavailable.UnavailableMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "gradingsite.static.StaticFiles",
    # With noise in the length of each page: it tells nothing of secrets in it beside what others made it say.
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "gradingsite.visible.name_the_unseen",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "grading.access.recording.remember_request",
    "grading.access.sessions.note_use",
    "grading.screens.zone.view.PersonsZone",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

ROOT_URLCONF = "gradingsite.urls"
WSGI_APPLICATION = "gradingsite.wsgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# --- database: SQLite (WAL, IMMEDIATE) unless DATABASE_URL names PostgreSQL -----------------------------------------
SQLITE_OPTIONS: dict[str, Any] = {
    "transaction_mode": "IMMEDIATE",
    # How long to wait for the turn to write, and then for programs that write without asking for one.
    "gate_seconds": 10,
    "timeout": 10,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON;",
}


def database() -> dict[str, Any]:
    url = env("DATABASE_URL", f"sqlite:///{STATE_DIR / 'db.sqlite3'}")
    config: dict[str, Any] = dict(dj_database_url.parse(url))
    if config["ENGINE"].endswith("sqlite3"):
        config["ENGINE"] = "gradingsite.sqlite"
        # Opening a file takes 2 ms of processor: its whole schema is read.
        config["CONN_MAX_AGE"] = 60
        config["OPTIONS"] = {**SQLITE_OPTIONS, **config.get("OPTIONS", {})}
        # A file, so that a worker process in the tests sees what the tests wrote.
        config["TEST"] = {"NAME": str(STATE_DIR / "test.sqlite3")}
    elif config["ENGINE"].endswith("postgresql"):
        config["CONN_MAX_AGE"] = 60
        config["CONN_HEALTH_CHECKS"] = True
        # A process that stands still in a transaction must not hold up the others for ever.
        config.setdefault("OPTIONS", {}).setdefault("options", "-c idle_in_transaction_session_timeout=30000")
    else:
        raise ImproperlyConfigured(f"Unexpected value DATABASE_URL={url!r}, use sqlite:/// or postgres://")
    return config


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL, LOGIN_REDIRECT_URL = "admin:login", "admin:index"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# How long whoever fails waits: grading.access.delays. It writes nothing else, and says so on the page itself.
AXES_HANDLER = "grading.access.delays.GrowingDelay"
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_ENABLE_ADMIN = AXES_VERBOSE = False
SILENCED_SYSTEM_CHECKS = [
    "axes.W002",  # its middleware would answer in place of the page
    "security.W005",  # whether other hosts of the domain have TLS is not for one site to say
    "security.W021",  # nor whether browsers are to be shipped with that
]
# Sessions end after twelve hours without use.
SESSION_ENGINE, SESSION_COOKIE_AGE = "grading.access.sessions", 12 * 3600
# What the processes have to know together: attempts at a second factor, and which codes were used.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "site_cache",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}
ACCOUNT_ADAPTER = "grading.access.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
MFA_ADAPTER = "grading.access.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "gradingsite"
MFA_RECOVERY_CODES_SHOW_ONCE = True
SOCIALACCOUNT_ADAPTER = "grading.access.adapters.SocialAccountAdapter"
# The way to the provider is a link: forms may go to this site alone.
SOCIALACCOUNT_LOGIN_ON_GET = True
# Sign-in by an OpenID Connect provider, where one is named; new users get this role, or are turned away.
OIDC_NAME = env("OIDC_NAME", "single sign-on")
OIDC_SERVER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET = (
    env_url("OIDC_SERVER"),
    env("OIDC_CLIENT_ID"),
    env("OIDC_CLIENT_SECRET"),
)
OIDC_NEW_USERS = env("OIDC_NEW_USERS")
if bool(OIDC_SERVER) != bool(OIDC_CLIENT_ID):
    raise ImproperlyConfigured("OIDC_SERVER and OIDC_CLIENT_ID belong together: set both, or neither")
if OIDC_NEW_USERS not in {"", "viewer", "reviewer", "operator"}:
    raise ImproperlyConfigured(f"Unexpected value OIDC_NEW_USERS={OIDC_NEW_USERS!r}, use viewer, reviewer or operator")
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": OIDC_NAME,
                "client_id": OIDC_CLIENT_ID,
                "secret": OIDC_CLIENT_SECRET,
                "settings": {"server_url": OIDC_SERVER},
            }
        ]
        if OIDC_CLIENT_ID
        else [],
    }
}

LANGUAGE_CODE = "en-gb"
USE_I18N = False
# The effective day of a session is a day in this zone.
TIME_ZONE = env("SITE_TIME_ZONE", "UTC")
USE_TZ = True

STATIC_URL = "static/"
MEDIA_ROOT = STATE_DIR / "evidence"
# Django sets these modes whatever the umask says.
FILE_UPLOAD_PERMISSIONS, FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o600, 0o700
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "gradingsite.static.HashedNames"},
}
# Straight from the packages: no collectstatic step, and none to forget.
WHITENOISE_USE_FINDERS = True
# Their compressed forms: made again when they are missed.
STATIC_CACHE = STATE_DIR / "cache" / "static"

# --- background work: the database is the queue, Redis wakes workers up (L7) -----------------------------------------
own_broker = broker.saved(STATE_DIR / "broker")
REDIS_URL = env("REDIS_URL") or (own_broker.url if own_broker else "redis://127.0.0.1:6379/0")
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"
# Calls to the judge at a time; and a thread besides, so that calls that hang keep nothing else from its turn.
WORKER_CONCURRENCY = env_int("WORKER_CONCURRENCY", 8, low=1, high=200)
CELERY_WORKER_CONCURRENCY = WORKER_CONCURRENCY + 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Waking a worker must never hold up a request when the broker is away.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 1,
    "socket_timeout": 5,
    "max_retries": 1,
    "interval_start": 0,
    "connect_retries_timeout": 1,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_DEFAULT_EXPIRES = 300
CELERY_TIMEZONE = "UTC"
SWEEP_SECONDS = env_number("SWEEP_SECONDS", 5, low=0.2, high=300)
# Long enough that a worker which starts slowly still finds one.
SWEEP_EXPIRES = max(30, 2 * SWEEP_SECONDS)
# The one place where it stands which jobs there are, and when. Whose turn it is, their rows say (PeriodicJob).
CELERY_BEAT_SCHEDULER = "gradingsite.beat:RowScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 5


def at(hour: int, minute: int) -> Any:
    """Each day at this time, as Celery has it; which is loaded when somebody asks."""

    def schedule() -> Any:
        from celery.schedules import crontab

        return crontab(hour=hour, minute=minute)

    return SimpleLazyObject(schedule)


CELERY_BEAT_SCHEDULE = {
    name: {"task": "grading.tasks.take_turn", "args": [name], "schedule": every, "options": {"expires": expires}}
    for name, every, expires in (
        ("sweep", SWEEP_SECONDS, SWEEP_EXPIRES),
        ("judge again", SWEEP_SECONDS, SWEEP_EXPIRES),
        ("notices", 15, 15),
        ("batches", 30, 30),
        ("prioritise", 60, 60),
        ("catch up", 60, 60),
        ("name models", 60, 60),
        ("categorise", 60, 60),
        ("read lessons", 60, 60),
        ("read calibration", 60, 60),
        ("read costs", 60, 60),
        ("dead man's call", 60, 60),
        ("tidy", 600, 300),
        # One that was missed, because the site was down, is made up for at the next start.
        ("at night", at(2, 30), 300),
        ("backup", at(4, 30), 300),
        ("check evidence", at(3, 30), 300),
    )
}

# --- whether the site works ------------------------------------------------------------------------------------------
# Between two heartbeats of each program; one that misses four of them stands still. 0: no program has any.
HEARTBEAT_SECONDS = env_number("HEARTBEAT_SECONDS", 5, low=0, high=60)
# How often an open page asks what is new. 0: pages stay as they were loaded.
FEED_SECONDS = env_number("FEED_SECONDS", 3, low=0, high=60)
# Called every minute while all is well, for a service that tells people when the calls stop.
DEADMAN_URL = env_url("DEADMAN_URL")

# --- the reward chain; checked at start-up by grading.checks -------------------------------------------
CHAIN_VERSION = "2"
FLOOR = env_number("GRADE_FLOOR", 0.1, low=0, high=1)
FLOOR_THRESHOLD = env_number("GRADE_FLOOR_THRESHOLD", 0.1, low=0, high=1)
# What a fallback's grade r is taken for where the chain compares it with another source's: shift + slope·r. Constants,
# so that settling again gives the same; what the bandits make of such grades is learnt from judged sessions.
CHAIN_SCALE = {
    source: (
        env_number(f"GRADE_{source.upper()}_SHIFT", 0, low=-1, high=1),
        env_number(f"GRADE_{source.upper()}_SLOPE", 1, low=0, high=2.5),
    )
    for source in ("trajectory", "journal")
}
# The most that machines can say of a session whose caller saw a mandatory check fail.
VETO_CAP = env_number("GRADE_VETO_CAP", 0.2, low=0, high=1)
EVIDENCE_WEIGHTS = {
    "human": 1.0,
    "judge": 1.0,
    "consumption": 1.0,
    "trajectory": 0.3,
    "journal": 0.3,
    "floor": env_number("FLOOR_WEIGHT", 0, low=0, high=1),
}
# What a reward's standing leaves of its weight. A verdict from before some of the evidence came counts as a fallback
# does, and so does what the graded agent alone vouches for; one that artifacts contradict by a gap of .3 counts fully,
# by .5 and more not at all.
STANDING_WEIGHTS = {
    "stale": EVIDENCE_WEIGHTS["trajectory"],
    "claimed": EVIDENCE_WEIGHTS["trajectory"],
    **{f"contested/{gap}": (50 - gap) / 20 for gap in range(31, 51)},
}

# --- review --------------------------------------------------------------------------------------------
# The chance with which a session comes before a person whatever it looks like: calibration rests on these.
REVIEW_SLICE = env_number("REVIEW_SLICE", 0.2, low=0, high=1)

# --- evidence ---------------------------------------------------------------------------------------------------------
EVIDENCE_MAX_BYTES = env_int("EVIDENCE_MAX_BYTES", 256 * 2**20, low=1024, high=2**34)
# Evidence bytes whose last owner sent them longer ago are deleted at night; 0: kept for ever.
RETENTION_DAYS = env_int("RETENTION_DAYS", 0, low=0, high=36_500)
# Where backups are made to, if anywhere on this machine: an erasure names those that still hold what is erased.
BACKUP_DIR = Path(env("BACKUP_DIR")).resolve() if env("BACKUP_DIR") else None
BACKUP_NIGHTLY = env_bool("BACKUP_NIGHTLY", default=False)
if BACKUP_NIGHTLY and BACKUP_DIR is None:
    raise ImproperlyConfigured("BACKUP_NIGHTLY needs BACKUP_DIR: name the folder that the backups are made in")
# The folder of pg_dump and pg_restore, where they are not those that are found by themselves.
PG_BIN = env("PG_BIN")
# Indexes of transcripts, for reading them: made again when they are missed, so the least recently used ones may go.
TRANSCRIPT_CACHE = STATE_DIR / "cache" / "transcripts"
TRANSCRIPT_CACHE_BYTES = env_int("TRANSCRIPT_CACHE_BYTES", 4 * 2**30, low=2**20, high=2**44)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 1 * 2**20
FILE_UPLOAD_TEMP_DIR = TEMP_DIR
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "grading.api.uploads.UnnamedFileUploadHandler",
]
# Where less than this is free in the state folder, nothing more is taken in: bytes; None: 1 GiB or 5 % of the disk,
# whichever is less.
FREE_SPACE_FLOOR = env_int("FREE_SPACE_FLOOR", 0, low=0, high=2**50) if env("FREE_SPACE_FLOOR") else None

# --- what one token may do a day (in SITE_TIME_ZONE); 0: as much as it likes -----------------------------------------
# A hundred sessions a day take some 400 requests, .2 GB where each has a log as large as one in a hundred is, and $8 of
# judging; a loop that asks every ten seconds takes 9,000 requests.
TOKEN_DAILY_REQUESTS = env_int("TOKEN_DAILY_REQUESTS", 20_000, low=0, high=10**9)
TOKEN_DAILY_BYTES = env_int("TOKEN_DAILY_BYTES", 10**9, low=0, high=10**15)
TOKEN_DAILY_JUDGE_USD = env_number("TOKEN_DAILY_JUDGE_USD", 50, low=0, high=1_000_000)

# --- the judge ------------------------------------------------------------------------------------------
ANTHROPIC_API_KEY = env("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = env("ANTHROPIC_BASE_URL")
JUDGE_MODEL = env("JUDGE_MODEL", "claude-sonnet-5-5")
# Asked when the first judge's service was in trouble this many times; empty: waited for instead.
JUDGE_FALLBACK_MODEL = env("JUDGE_FALLBACK_MODEL")
JUDGE_FALLBACK_AFTER = env_int("JUDGE_FALLBACK_AFTER", 3, low=1, high=1000)
# Another family's opinion on a share of the sessions (set in the browser); key and address if they are others.
JUDGE_SECOND_MODEL = env("JUDGE_SECOND_MODEL")
JUDGE_SECOND_API_KEY = env("JUDGE_SECOND_API_KEY")
JUDGE_SECOND_BASE_URL = env("JUDGE_SECOND_BASE_URL")
JUDGE_TIMEOUT = env_number("JUDGE_TIMEOUT", 120, low=0.1, high=3600)
JUDGE_LEASE_SECONDS = env_number("JUDGE_LEASE_SECONDS", 300, low=0.5, high=86_400)
JUDGE_MAX_ATTEMPTS = env_int("JUDGE_MAX_ATTEMPTS", 8, low=1, high=1000)
# On PostgreSQL, work is due by the database's clock: machines' clocks differ. The tests' clock is their own.
DATABASE_CLOCK = env_bool("DATABASE_CLOCK", default=True)
# For drills: a file with the seconds by which that clock is wrong.
CLOCK_SHIFT_FILE = env("CLOCK_SHIFT_FILE")
# The first wait of a backoff that doubles up to an hour, and the first gap between probes of an exhausted quota.
JUDGE_BACKOFF_SECONDS = env_number("JUDGE_BACKOFF_SECONDS", 15, low=0.01, high=3600)
JUDGE_PROBE_SECONDS = env_number("JUDGE_PROBE_SECONDS", 60, low=0.1, high=3600)
JUDGE_INPUT_TOKENS = env_int("JUDGE_INPUT_TOKENS", 24_000, low=1000, high=1_000_000)
# A session that waited longer than this for its verdict is backlog: new ones go before it.
JUDGE_NEW_MINUTES = env_number("JUDGE_NEW_MINUTES", 15, low=0, high=10_000)
# The backlog goes in batches (where that is chosen in the browser) from so many jobs on.
JUDGE_BATCH_LEAST = env_int("JUDGE_BATCH_LEAST", 10, low=1, high=10_000)
# An open batch is asked after no more often than this, and less often as it grows older.
JUDGE_BATCH_POLL_SECONDS = env_number("JUDGE_BATCH_POLL_SECONDS", 30, low=0, high=3600)
# Dollars per million tokens, in and out. "other" is used for a model that is not listed.
JUDGE_PRICES = {
    "claude-haiku-5-5": (0.10, 0.50),
    "claude-sonnet-5-5": (2.0, 10.0),
    "claude-opus-5-5": (4.0, 20.0),
    "other": (4.0, 20.0),
}
# Shares of the input price for tokens written to and read from the provider's cache; of the whole price in a batch.
JUDGE_CACHE_WRITE_PRICE, JUDGE_CACHE_READ_PRICE, JUDGE_BATCH_PRICE = 1.25, 0.1, 0.5
# `make demo` sets this: every page says that the verdicts are simulated.
SIMULATED = env_bool("JUDGE_SIMULATED", default=False)
# And this: the site begins with made-up history, and has a page on which an incident is lived again.
DEMO = env_bool("DEMO", default=False)
if DEMO and not SIMULATED:
    raise ImproperlyConfigured("DEMO=yes needs JUDGE_SIMULATED=yes: a demo breaks its judge. Use `make demo`")

# --- people: when a queue has waited too long, and who is told of alarms outside the site --------------
REVIEW_WAITS_HOURS = env_number("REVIEW_WAITS_HOURS", 48, low=0, high=10_000)
NOTIFY_EMAIL = env_list("NOTIFY_EMAIL")
NOTIFY_WEBHOOK = env_url("NOTIFY_WEBHOOK")
NOTIFY_WEBHOOK_SECRET = env("NOTIFY_WEBHOOK_SECRET")
# Ids of rules; empty: every rule of an alarm's weight, and A31.
NOTIFY_RULES = env_list("NOTIFY_RULES")
NOTIFY_TIMEOUT = env_number("NOTIFY_TIMEOUT", 10, low=0.1, high=60)
# People are invited by mail where a mail server is named.
MAIL_WORKS = bool(env("EMAIL_HOST"))
EMAIL_HOST = env("EMAIL_HOST", "localhost")
EMAIL_PORT = env_int("EMAIL_PORT", 25, low=1, high=65_535)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = env("EMAIL_HOST_USER"), env("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS", default=False)
EMAIL_USE_SSL = env_bool("EMAIL_USE_SSL", default=False)
EMAIL_TIMEOUT = NOTIFY_TIMEOUT
DEFAULT_FROM_EMAIL = env("DEFAULT_FROM_EMAIL", "gradingsite@localhost")

LOG_FORMAT = env("LOG_FORMAT", "line")
if LOG_FORMAT not in {"line", "json"}:
    raise ImproperlyConfigured(f"Unexpected value LOG_FORMAT={LOG_FORMAT!r}, use line or json")
# Where traces are sent, by OpenTelemetry's own name for it: the address of a collector that speaks OTLP over HTTP.
OTEL_ENDPOINT = env_url("OTEL_EXPORTER_OTLP_ENDPOINT")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "gradingsite.visible.LineFormatter", "format": "%(levelname)s %(name)s: %(message)s"},
        "json": {"()": "gradingsite.telemetry.JsonLines", "format": "%(message)s", "timestamp": "time"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["console"], "level": env("LOG_LEVEL", "INFO").upper()},
    # A line for each wakeup would bury the rest.
    "loggers": {name: {"level": "WARNING"} for name in ("celery.worker.strategy", "celery.app.trace", "celery.beat")},
}
