"""The site's settings: one file, read from the environment, failing loudly. Every variable is in the README's table."""

import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from celery.schedules import crontab
from django.core.exceptions import ImproperlyConfigured

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


# What draws are made with (`bandit.chance`). Not the secret key, which may be changed at any time.
CHANCE_KEY = chance_key(Path(env("CHANCE_KEY_FILE", str(STATE_DIR / "chance.key"))))
SECRET_KEY = env("SECRET_KEY") or generated_secret(STATE_DIR / "secret_key")
DEBUG = env_bool("DEBUG", default=False)
HOST = env("HOST", "127.0.0.1")
PORT = env_int("PORT", 8000, low=1, high=65_535)
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
# Behind a TLS proxy: cookies travel on https only and the forwarded scheme is believed.
HTTPS = env_bool("HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
# Cookies know no port: two sites on one machine would log each other out.
SESSION_COOKIE_NAME = f"sessionid_{PORT}"
CSRF_COOKIE_NAME = f"csrftoken_{PORT}"
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
    "ninja",
    # Ours last: what they do after a migration (roles) needs the permissions that auth makes then.
    "bandit",
    "grading",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
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
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
}


def database() -> dict[str, Any]:
    url = env("DATABASE_URL", f"sqlite:///{STATE_DIR / 'db.sqlite3'}")
    config: dict[str, Any] = dict(dj_database_url.parse(url))
    if config["ENGINE"].endswith("sqlite3"):
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
LOGIN_URL = "admin:login"

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
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Straight from the packages: no collectstatic step, and none to forget.
WHITENOISE_USE_FINDERS = True

# --- background work: the database is the queue, Redis wakes workers up (L7) -----------------------------------------
own_broker = broker.saved(STATE_DIR / "broker")
REDIS_URL = env("REDIS_URL") or (own_broker.url if own_broker else "redis://127.0.0.1:6379/0")
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = env_int("WORKER_CONCURRENCY", 8, low=1, high=200)
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
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "grading.tasks.sweep", "schedule": SWEEP_SECONDS, "options": {"expires": SWEEP_EXPIRES}},
    "judge again": {
        "task": "grading.tasks.judge_again",
        "schedule": SWEEP_SECONDS,
        "options": {"expires": SWEEP_EXPIRES},
    },
    "notices": {"task": "grading.tasks.notices", "schedule": 15, "options": {"expires": 15}},
    "batches": {"task": "grading.tasks.batches", "schedule": 30, "options": {"expires": 30}},
    "prioritise": {"task": "grading.tasks.prioritise", "schedule": 60, "options": {"expires": 60}},
    "catch up": {"task": "grading.tasks.catch_up", "schedule": 60, "options": {"expires": 60}},
    "name models": {"task": "grading.tasks.name_models", "schedule": 60, "options": {"expires": 60}},
    # One that was missed, because the site was down, is made up for at the next start.
    "at night": {"task": "grading.tasks.at_night", "schedule": crontab(hour="2", minute="30")},
}

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
# Indexes of transcripts, for reading them: made again when they are missed, so the least recently used ones may go.
TRANSCRIPT_CACHE = STATE_DIR / "cache" / "transcripts"
TRANSCRIPT_CACHE_BYTES = env_int("TRANSCRIPT_CACHE_BYTES", 4 * 2**30, low=2**20, high=2**44)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 1 * 2**20

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

# --- people: when a queue has waited too long, and who is told of alarms outside the site --------------
REVIEW_WAITS_HOURS = env_number("REVIEW_WAITS_HOURS", 48, low=0, high=10_000)
NOTIFY_EMAIL = env_list("NOTIFY_EMAIL")
NOTIFY_WEBHOOK = env_url("NOTIFY_WEBHOOK")
NOTIFY_WEBHOOK_SECRET = env("NOTIFY_WEBHOOK_SECRET")
# Ids of rules; empty: every rule of an alarm's weight, and A31.
NOTIFY_RULES = env_list("NOTIFY_RULES")
NOTIFY_TIMEOUT = env_number("NOTIFY_TIMEOUT", 10, low=0.1, high=60)
EMAIL_HOST = env("EMAIL_HOST", "localhost")
EMAIL_PORT = env_int("EMAIL_PORT", 25, low=1, high=65_535)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = env("EMAIL_HOST_USER"), env("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS", default=False)
EMAIL_USE_SSL = env_bool("EMAIL_USE_SSL", default=False)
EMAIL_TIMEOUT = NOTIFY_TIMEOUT
DEFAULT_FROM_EMAIL = env("DEFAULT_FROM_EMAIL", "gradingsite@localhost")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env("LOG_LEVEL", "INFO").upper()},
    # A line for each wakeup would bury the rest.
    "loggers": {name: {"level": "WARNING"} for name in ("celery.worker.strategy", "celery.app.trace", "celery.beat")},
}
