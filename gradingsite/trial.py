"""The environment of `gradingsite try`, made before the settings are read."""

import os

from gradingsite import broker

HOST, PORT = "127.0.0.1", 8000
# Settings that a trial obeys. The others would connect it to something: a database, a broker, a judge, people's mail.
OBEYED = frozenset(
    (
        *("EVIDENCE_MAX_BYTES", "FEED_SECONDS", "FREE_SPACE_FLOOR", "GRADINGSITE_STATE", "LOG_FORMAT", "LOG_LEVEL"),
        *("PORT", "RETENTION_DAYS", "SITE_TIME_ZONE", "TRANSCRIPT_CACHE_BYTES"),
    )
)
# How the names of the others begin. Such variables are often set for other programs.
IGNORED = (
    *("ALLOWED_HOSTS", "ANTHROPIC_", "BACKUP_", "CANARY", "CHANCE_KEY", "CLOCK_SHIFT_FILE", "CSRF_TRUSTED_ORIGINS"),
    *("DATABASE_", "DEADMAN_URL", "DEBUG", "DEFAULT_FROM_EMAIL", "DEMO", "DJANGO_", "EMAIL_", "EVIDENCE"),
    *("FLOOR_WEIGHT", "GRADE_", "HEARTBEAT_SECONDS", "HOST", "HTTPS", "JUDGE_", "NOTIFY_", "OIDC_", "OTEL_", "PG_BIN"),
    *("REDIS_URL", "REVIEW_", "SECRET_KEY", "SITE_URL", "SWEEP_SECONDS", "TOKEN_DAILY_", "TRUSTED_PROXIES"),
    *("WEB_CONCURRENCY", "WORKER_CONCURRENCY"),
)


def prepare_environment() -> None:
    """Remove the settings that a trial ignores, and choose a free port unless PORT names one."""
    for name in list(os.environ):
        if name.startswith(IGNORED) and name not in OBEYED:
            del os.environ[name]
    if not os.environ.get("PORT", "").strip():
        os.environ["PORT"] = str(PORT if broker.is_free(PORT, HOST) else broker.free_port())
    os.environ |= {"GRADINGSITE_TRIAL": "yes", "HOST": HOST, "HEARTBEAT_SECONDS": "0"}
    os.environ.setdefault("LOG_LEVEL", "ERROR")
