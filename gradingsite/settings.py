"""Django settings, read from environment variables, which docs/configure.md lists. Invalid values stop the site."""

import os
import socket
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import SimpleLazyObject

from gradingsite import broker
from gradingsite.evidence import evidence_storage
from gradingsite.privacy import chance_key, keep_private, secret_key
from gradingsite.state import RESOURCES, ROOT, START_DEMO, state_folder

BASE_DIR = ROOT


def env(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def env_number(name: str, default: float, *, low: float, high: float) -> float:
    """A number between `low` and `high`. Raises ImproperlyConfigured for anything else."""
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
    """Whether the variable says yes. Raises ImproperlyConfigured for anything but yes, no and the like."""
    text = env(name, "yes" if default else "no").lower()
    if text not in {"yes", "no", "true", "false", "1", "0", "on", "off"}:
        raise ImproperlyConfigured(f"Unexpected value {name}={text!r}, use yes or no")
    return text in {"yes", "true", "1", "on"}


def env_url(name: str) -> str:
    """An http or https URL, or an empty string. Raises ImproperlyConfigured for anything else."""
    text = env(name)
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname):
        # Without the value: such URLs often contain a secret.
        raise ImproperlyConfigured(f"Unexpected value of {name}, use an address like https://host/path")
    return text


def env_hex(name: str, size: int) -> bytes:
    """A key of so many bytes in hexadecimal digits, or b"". Raises ImproperlyConfigured for anything else."""
    text = env(name)
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if text and len(key) != size:
        # Without the value, which is secret.
        raise ImproperlyConfigured(
            f"Unexpected value of {name}, use {2 * size} hexadecimal digits (openssl rand -hex {size})"
        )
    return key


def env_list(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in env(name, default).split(",") if part.strip()]


def env_networks(name: str) -> list[str]:
    """IP addresses and networks, such as 10.0.0.0/8. Raises ImproperlyConfigured for anything else."""
    try:
        return [str(ip_network(part)) for part in env_list(name)]
    except ValueError as error:
        raise ImproperlyConfigured(
            f"Unexpected value {name}={env(name)!r}, use addresses or networks like 10.0.0.0/8: {error}"
        ) from None


# Whether this is `gradingsite try`: one process that reads logs where they are, for the person who started it.
TRIAL = os.environ.get("GRADINGSITE_TRIAL") == "yes"  # set by gradingsite.command alone
# The site writes all of its files here: database, evidence, broker, secrets.
STATE_DIR = state_folder(env("GRADINGSITE_STATE"))
keep_private(STATE_DIR)


# Uploads too large for memory. Emptied when the site starts.
TEMP_DIR = STATE_DIR / "tmp"
TEMP_DIR.mkdir(parents=True, exist_ok=True)
# The key for random draws (`bandit.chance`). Separate from SECRET_KEY, which may be changed at any time.
CHANCE_KEY = env_hex("CHANCE_KEY", 32) or chance_key(Path(env("CHANCE_KEY_FILE", str(STATE_DIR / "chance.key"))))
SECRET_KEY = env("SECRET_KEY") or secret_key(Path(env("SECRET_KEY_FILE", str(STATE_DIR / "secret_key"))))
# Earlier values of SECRET_KEY, to read what was encrypted or signed with them.
SECRET_KEY_FALLBACKS = env_list("SECRET_KEY_FALLBACKS")
DEBUG = env_bool("DEBUG", default=False)
HOST = env("HOST", "127.0.0.1")
PORT = env_int("PORT", 8000, low=1, high=65_535)
WEB_CONCURRENCY = env_int("WEB_CONCURRENCY", 2, low=1, high=64)
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
# Addresses and networks whose X-Forwarded-For header is trusted.
TRUSTED_PROXIES = env_networks("TRUSTED_PROXIES")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
# Behind a TLS proxy: cookies are sent over https only, and X-Forwarded-Proto is trusted.
HTTPS = env_bool("HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_SSL_REDIRECT = HTTPS
# Cookies ignore the port: with the same names, two sites on one machine would sign each other's users out.
SESSION_COOKIE_NAME = f"sessionid_{PORT}"
CSRF_COOKIE_NAME = f"csrftoken_{PORT}"
# Monitoring on this machine connects without TLS.
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
    # Last, because their post_migrate handlers (roles) need the permissions that auth creates.
    "bandit",
    "grading",
]

MIDDLEWARE = [
    "gradingsite.middleware.add_request_id",
    "grading.trial.access.require_key",
    "gradingsite.middleware.UnavailableMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "gradingsite.static.StaticFiles",
    # It adds random bytes to each page, so that lengths don't reveal secrets beside text that others chose (BREACH).
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "gradingsite.middleware.show_invisible_characters",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "grading.trial.access.sign_in",
    "grading.access.recording.remember_request",
    "grading.access.sessions.note_use",
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
        "DIRS": [RESOURCES / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "grading.screens.frame.page_frame",
            ],
        },
    }
]

# --- database: SQLite (WAL, IMMEDIATE) unless DATABASE_URL names PostgreSQL -----------------------------------------
SQLITE_OPTIONS: dict[str, Any] = {
    "transaction_mode": "IMMEDIATE",
    "gate_seconds": 10,  # how long to wait at the write gate
    "timeout": 10,  # and then for programs that write without it
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON;",
}


def database() -> dict[str, Any]:
    """Django's settings of the database that DATABASE_URL names. Raises ImproperlyConfigured for other kinds."""
    url = env("DATABASE_URL", f"sqlite:///{STATE_DIR / 'db.sqlite3'}")
    try:
        config: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError:
        config = {"ENGINE": ""}
    if config["ENGINE"].endswith("sqlite3"):
        config["ENGINE"] = "gradingsite.sqlite"
        # Opening the file takes 2 ms of CPU, because SQLite reads the whole schema.
        config["CONN_MAX_AGE"] = 60
        config["OPTIONS"] = {**SQLITE_OPTIONS, **config.get("OPTIONS", {})}
        # A file, so that worker processes in tests can read it.
        config["TEST"] = {"NAME": str(STATE_DIR / "test.sqlite3")}
    elif config["ENGINE"].endswith("postgresql"):
        config["CONN_MAX_AGE"] = 60
        config["CONN_HEALTH_CHECKS"] = True
        # A process that hangs in a transaction must not block the others forever.
        options = config.setdefault("OPTIONS", {})
        options["options"] = f"-c idle_in_transaction_session_timeout=30000 {options.get('options', '')}".strip()
    else:
        scheme = url.partition(":")[0][:20]  # the rest may have a password
        raise ImproperlyConfigured(f"Unexpected value DATABASE_URL={scheme}:…, use sqlite:/// or postgres://")
    return config


DATABASES = {"default": database()}
# This host's name in logs, metrics and heartbeats. A site on SQLite has one host, which needs no name.
HOST_NAME = env("HOST_NAME", "" if DATABASES["default"]["ENGINE"] == "gradingsite.sqlite" else socket.gethostname())[
    :100
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# Computes the delay after failed sign-ins, and shows it on the sign-in page.
AXES_HANDLER = "grading.access.delays.GrowingDelay"
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_ENABLE_ADMIN = AXES_VERBOSE = False
SILENCED_SYSTEM_CHECKS = [
    "axes.W002",  # the middleware of axes would replace the sign-in page
    "security.W005",  # HSTS for subdomains: a site can't decide for the domain's other hosts
    "security.W021",  # HSTS preload: the same
]
SESSION_ENGINE = "grading.access.sessions"
SESSION_COOKIE_AGE = 12 * 3600  # seconds without use
# Shared by all processes: attempts at a second factor, and used codes.
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
# A link leads to the provider, because the content security policy allows forms only to this site.
SOCIALACCOUNT_LOGIN_ON_GET = True
# Sign-in with an OpenID Connect provider. New users get the role OIDC_NEW_USERS or, if it is empty, are refused.
OIDC_NAME = env("OIDC_NAME", "single sign-on")
OIDC_SERVER = env_url("OIDC_SERVER")
OIDC_CLIENT_ID = env("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = env("OIDC_CLIENT_SECRET")
OIDC_NEW_USERS = env("OIDC_NEW_USERS")
if bool(OIDC_SERVER) != bool(OIDC_CLIENT_ID):
    raise ImproperlyConfigured("OIDC_SERVER and OIDC_CLIENT_ID belong together: set both, or neither")
if OIDC_NEW_USERS not in {"", "viewer", "reviewer", "operator"}:
    raise ImproperlyConfigured(f"Unexpected value OIDC_NEW_USERS={OIDC_NEW_USERS!r}, use viewer, reviewer or operator")
OIDC_APP = {
    "provider_id": "sso",
    "name": OIDC_NAME,
    "client_id": OIDC_CLIENT_ID,
    "secret": OIDC_CLIENT_SECRET,
    "settings": {"server_url": OIDC_SERVER},
}
SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [OIDC_APP] if OIDC_CLIENT_ID else []}}

LANGUAGE_CODE = "en-gb"
USE_I18N = False
# Pages show times in this zone, and a session's effective day is a day in it.
TIME_ZONE = env("SITE_TIME_ZONE", "UTC")
USE_TZ = True

STATIC_URL = "static/"
MEDIA_ROOT = STATE_DIR / "evidence"
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
# Where evidence is stored: files, database (for small sites on several hosts) or s3://bucket/folder.
EVIDENCE = env("EVIDENCE", "files")
EVIDENCE_ENDPOINT = env_url("EVIDENCE_ENDPOINT")
EVIDENCE_REGION = env("EVIDENCE_REGION")
STORAGES = {
    "default": evidence_storage(EVIDENCE),
    "staticfiles": {"BACKEND": "gradingsite.static.HashedNames"},
}
WHITENOISE_USE_FINDERS = True  # serve files from the packages, without collectstatic
# Compressed copies of static files. They are made again if missing.
STATIC_CACHE = STATE_DIR / "cache" / "static"

# --- background work: the queue is in the database, and Redis only wakes workers -------------------------------------
own_broker = broker.saved_broker(STATE_DIR / "broker")
REDIS_URL = env("REDIS_URL") or (own_broker.url if own_broker else "redis://127.0.0.1:6379/0")
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"
# The number of concurrent calls to the judge. One more thread, so that other tasks run even if all calls hang.
WORKER_CONCURRENCY = env_int("WORKER_CONCURRENCY", 8, low=1, high=200)
CELERY_WORKER_CONCURRENCY = WORKER_CONCURRENCY + 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A request that wakes a worker must not block while the broker is away.
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
# Long enough for a worker that starts slowly to receive one.
SWEEP_EXPIRES = max(30, 2 * SWEEP_SECONDS)
# The schedule below is the only list of periodic jobs. Rows (PeriodicJob) record when each was run.
CELERY_BEAT_SCHEDULER = "gradingsite.beat:RowScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 5


def daily(hour: int, minute: int) -> Any:
    """A Celery schedule for each day at this time (UTC), lazy so that most programs don't import Celery."""

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
        # Takes 2 s of processor time on a site of 200,000 sessions, and on a busy site there is always something new.
        ("read insight", 600, 600),
        ("follow commits", 60, 60),
        ("dead man's call", 60, 60),
        ("weekly letter", 600, 300),
        ("recheck evidence", 600, 300),
        # If the site was down at that time, these run at the next start.
        ("at night", daily(2, 30), 300),
        ("canaries", daily(5, 30), 300),
        ("check evidence", daily(3, 30), 300),
    )
}
# Jobs that each host runs for itself, without a message (grading/housekeeping.py).
HOST_JOBS = {"tidy": 600, "backup": daily(4, 30)}

# --- liveness --------------------------------------------------------------------------------------------------------
# Between two heartbeats of each program, which counts as hanging after four missed ones. 0 means no heartbeats.
HEARTBEAT_SECONDS = env_number("HEARTBEAT_SECONDS", 5, low=0, high=60)
# How often an open page polls for changes. 0 means never.
FEED_SECONDS = env_number("FEED_SECONDS", 3, low=0, high=60)
# Called every minute while the site works. A monitoring service alerts people when the calls stop.
DEADMAN_URL = env_url("DEADMAN_URL")

# --- the reward chain (checked at start by grading.checks) -----------------------------------------------------------
CHAIN_VERSION = "2"
FLOOR = env_number("GRADE_FLOOR", 0.1, low=0, high=1)
FLOOR_THRESHOLD = env_number("GRADE_FLOOR_THRESHOLD", 0.1, low=0, high=1)
# (shift, slope): where the chain compares a fallback's grade r with another source's, it counts as shift + slope·r.
# Constants, so that settling again gives the same reward. The bandits calibrate such grades on judged sessions instead.
CHAIN_SCALE = {
    source: (
        env_number(f"GRADE_{source.upper()}_SHIFT", 0, low=-1, high=1),
        env_number(f"GRADE_{source.upper()}_SLOPE", 1, low=0, high=2.5),
    )
    for source in ("trajectory", "journal")
}
# The highest grade by a machine for a session in which a mandatory check failed, according to its caller.
VETO_CAP = env_number("GRADE_VETO_CAP", 0.2, low=0, high=1)
EVIDENCE_WEIGHTS = {
    "human": 1.0,
    "judge": 1.0,
    "consumption": 1.0,
    "trajectory": 0.3,
    "journal": 0.3,
    "floor": env_number("FLOOR_WEIGHT", 0, low=0, high=1),
}
# The weight that a reward's standing leaves. A verdict that hasn't read all evidence and a reward that only the agent
# vouches for count like a fallback. A reward by rules from a log of a harness of which few logs were read counts half.
# A reward that artifacts contradict counts fully up to a gap of .3, and not at all from .5.
STANDING_WEIGHTS = {
    "stale": EVIDENCE_WEIGHTS["trajectory"],
    "claimed": EVIDENCE_WEIGHTS["trajectory"],
    "few_samples": 0.5,
    **{f"contested/{gap}": (50 - gap) / 20 for gap in range(31, 51)},
}

# --- review ----------------------------------------------------------------------------------------------------------
# The probability that a session is drawn for review, whatever its grades. Calibration uses these sessions.
REVIEW_SLICE = env_number("REVIEW_SLICE", 0.2, low=0, high=1)

# --- evidence ---------------------------------------------------------------------------------------------------------
EVIDENCE_MAX_BYTES = env_int("EVIDENCE_MAX_BYTES", 256 * 2**20, low=1024, high=2**34)
# Evidence older than this is deleted at night. 0 means never.
RETENTION_DAYS = env_int("RETENTION_DAYS", 0, low=0, high=36_500)
# The folder of backups, if on this machine. An erasure lists the backups that still contain what it erases.
BACKUP_DIR = Path(env("BACKUP_DIR")).resolve() if env("BACKUP_DIR") else None
BACKUP_NIGHTLY = env_bool("BACKUP_NIGHTLY", default=False)
if BACKUP_NIGHTLY and BACKUP_DIR is None:
    raise ImproperlyConfigured("BACKUP_NIGHTLY needs BACKUP_DIR: name the folder that the backups are made in")
# The folder of pg_dump and pg_restore, if they aren't found automatically.
PG_BIN = env("PG_BIN")
# Indexes for reading transcripts. Missing ones are made again, and the least recently used ones are evicted.
TRANSCRIPT_CACHE = STATE_DIR / "cache" / "transcripts"
TRANSCRIPT_CACHE_BYTES = env_int("TRANSCRIPT_CACHE_BYTES", 4 * 2**30, low=2**20, high=2**44)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 1 * 2**20
FILE_UPLOAD_TEMP_DIR = TEMP_DIR
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "grading.api.uploads.UnnamedFileUploadHandler",
]
# In bytes: with less free space in the state folder, nothing is accepted. None means 1 GiB or 5 % of the disk,
# whichever is less.
FREE_SPACE_FLOOR = env_int("FREE_SPACE_FLOOR", 0, low=0, high=2**50) if env("FREE_SPACE_FLOOR") else None

# --- daily quotas of each token, by days in SITE_TIME_ZONE; 0 means no limit -----------------------------------------
# A hundred sessions take about 400 requests, $8 of judging, and .2 GB if every log is as large as the largest 1 %.
# Polling every ten seconds takes 9,000 requests.
TOKEN_DAILY_REQUESTS = env_int("TOKEN_DAILY_REQUESTS", 20_000, low=0, high=10**9)
TOKEN_DAILY_BYTES = env_int("TOKEN_DAILY_BYTES", 10**9, low=0, high=10**15)
TOKEN_DAILY_JUDGE_USD = env_number("TOKEN_DAILY_JUDGE_USD", 50, low=0, high=1_000_000)

# --- the judge -------------------------------------------------------------------------------------------------------
ANTHROPIC_API_KEY = env("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = env("ANTHROPIC_BASE_URL")
JUDGE_MODEL = env("JUDGE_MODEL", "claude-sonnet-5-5")
# Judges a session after the first judge's service has failed JUDGE_FALLBACK_AFTER times. If empty, the session waits.
JUDGE_FALLBACK_MODEL = env("JUDGE_FALLBACK_MODEL")
JUDGE_FALLBACK_AFTER = env_int("JUDGE_FALLBACK_AFTER", 3, low=1, high=1000)
# Another model family for second opinions on a share of sessions (set in the browser), with its own key and address if
# they differ.
JUDGE_SECOND_MODEL = env("JUDGE_SECOND_MODEL")
JUDGE_SECOND_API_KEY = env("JUDGE_SECOND_API_KEY")
JUDGE_SECOND_BASE_URL = env("JUDGE_SECOND_BASE_URL")
JUDGE_TIMEOUT = env_number("JUDGE_TIMEOUT", 120, low=0.1, high=3600)
JUDGE_LEASE_SECONDS = env_number("JUDGE_LEASE_SECONDS", 300, low=0.5, high=86_400)
JUDGE_MAX_ATTEMPTS = env_int("JUDGE_MAX_ATTEMPTS", 8, low=1, high=1000)
# On PostgreSQL, use the database's clock for due times, because machines' clocks differ. Tests set their own clock.
DATABASE_CLOCK = env_bool("DATABASE_CLOCK", default=True)
# For drills: a file with the seconds by which to shift that clock.
CLOCK_SHIFT_FILE = env("CLOCK_SHIFT_FILE")
# The first wait of a backoff that doubles up to an hour, and the first gap between probes of an exhausted quota.
JUDGE_BACKOFF_SECONDS = env_number("JUDGE_BACKOFF_SECONDS", 15, low=0.01, high=3600)
JUDGE_PROBE_SECONDS = env_number("JUDGE_PROBE_SECONDS", 60, low=0.1, high=3600)
JUDGE_INPUT_TOKENS = env_int("JUDGE_INPUT_TOKENS", 24_000, low=1000, high=1_000_000)
# A session that has waited longer than this for its verdict is backlog: newer sessions come first.
JUDGE_NEW_MINUTES = env_number("JUDGE_NEW_MINUTES", 15, low=0, high=10_000)
# Judge two logs whose worth is known every day, to notice if the judge's scale changes.
CANARY = env_bool("CANARY", default=True)
# The backlog is sent in batches (if enabled in the browser) once it has this many jobs.
JUDGE_BATCH_LEAST = env_int("JUDGE_BATCH_LEAST", 10, low=1, high=10_000)
# The shortest interval between two polls of an open batch. Older batches are polled less often.
JUDGE_BATCH_POLL_SECONDS = env_number("JUDGE_BATCH_POLL_SECONDS", 30, low=0, high=3600)
# Dollars per million input and output tokens. "other" is for models that aren't listed.
JUDGE_PRICES = {
    "claude-haiku-5-5": (0.10, 0.50),
    "claude-sonnet-5-5": (2.0, 10.0),
    "claude-opus-5-5": (4.0, 20.0),
    "other": (4.0, 20.0),
}
# Factors of the input price for tokens written to and read from the provider's cache, and of the price in a batch.
JUDGE_CACHE_WRITE_PRICE = 1.25
JUDGE_CACHE_READ_PRICE = 0.1
JUDGE_BATCH_PRICE = 0.5
# `make demo` sets both of these. Every page says that verdicts are simulated.
SIMULATED = env_bool("JUDGE_SIMULATED", default=False)
# The site starts with invented history, and has a page that replays an incident.
DEMO = env_bool("DEMO", default=False)
if DEMO and not SIMULATED:
    raise ImproperlyConfigured(f"DEMO=yes needs JUDGE_SIMULATED=yes: a demo breaks its judge. Use `{START_DEMO}`")

# --- alarms, notices and mail ----------------------------------------------------------------------------------------
REVIEW_WAITS_HOURS = env_number("REVIEW_WAITS_HOURS", 48, low=0, high=10_000)
NOTIFY_EMAIL = env_list("NOTIFY_EMAIL")
NOTIFY_WEBHOOK = env_url("NOTIFY_WEBHOOK")
NOTIFY_WEBHOOK_SECRET = env("NOTIFY_WEBHOOK_SECRET")
# Ids of the rules that send notices. If empty: rules that open alarms rather than advisories, and A31 (review is
# overdue).
NOTIFY_RULES = env_list("NOTIFY_RULES")
# Whether NOTIFY_EMAIL and NOTIFY_WEBHOOK get the weekly letter, too.
NOTIFY_LETTER = env_bool("NOTIFY_LETTER", default=False)
NOTIFY_TIMEOUT = env_number("NOTIFY_TIMEOUT", 10, low=0.1, high=60)
# Whether a mail server is configured. Without one, nobody is invited by mail.
MAIL_WORKS = bool(env("EMAIL_HOST"))
EMAIL_HOST = env("EMAIL_HOST", "localhost")
EMAIL_PORT = env_int("EMAIL_PORT", 25, low=1, high=65_535)
EMAIL_HOST_USER = env("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS", default=False)
EMAIL_USE_SSL = env_bool("EMAIL_USE_SSL", default=False)
EMAIL_TIMEOUT = NOTIFY_TIMEOUT
DEFAULT_FROM_EMAIL = env("DEFAULT_FROM_EMAIL", "gradingsite@localhost")

LOG_FORMAT = env("LOG_FORMAT", "line")
if LOG_FORMAT not in {"line", "json"}:
    raise ImproperlyConfigured(f"Unexpected value LOG_FORMAT={LOG_FORMAT!r}, use line or json")
# The address of a collector for traces (OTLP over HTTP), under OpenTelemetry's own name.
OTEL_ENDPOINT = env_url("OTEL_EXPORTER_OTLP_ENDPOINT")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "gradingsite.telemetry.LineFormatter", "format": "%(levelname)s %(name)s: %(message)s"},
        "json": {"()": "gradingsite.telemetry.JsonLines", "format": "%(message)s", "timestamp": "time"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["console"], "level": env("LOG_LEVEL", "INFO").upper()},
    # Without a line for each message that wakes a worker.
    "loggers": {name: {"level": "WARNING"} for name in ("celery.worker.strategy", "celery.app.trace", "celery.beat")},
}
