"""When Claude Code deletes transcripts, and which prompts have lost theirs."""

import datetime as dt
import json
import os

import pytest
from django.utils import timezone

from grading.trial import keeping, places, reading
from tests.trial.homes import make_home

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 86_400
SECRET = "sk-ant-api03-" + "a1B2" * 20


@pytest.fixture
def claude(tmp_path, monkeypatch, settings):
    """The folder of Claude Code, with logs that were read in place."""
    settings.MEDIA_ROOT = tmp_path / "evidence"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    make_home(tmp_path)
    reading.read_logs([tmp_path / ".claude" / "projects"], reading.ReadingProgress())
    return tmp_path / ".claude"


def transcripts(claude):
    return sorted((claude / "projects").glob("*/*.jsonl"))


@pytest.mark.parametrize(
    ("settings_file", "days"),
    [
        (None, 30),
        ('{"cleanupPeriodDays": 7}', 7),
        ('{"cleanupPeriodDays": 99999}', 30),
        ('{"cleanupPeriodDays": "7"}', 30),
        ('{"cleanupPeriodDays": true}', 30),
        ('{"other": 1}', 30),
        ("[1]", 30),
        ("{", 30),
    ],
)
def test_the_days_are_those_of_claude_codes_settings(claude, settings_file, days):
    if settings_file is not None:
        (claude / "settings.json").write_text(settings_file)
    assert places.cleanup_days() == days


def test_the_page_says_how_many_transcripts_go_and_when(claude):
    now, logs = timezone.now().timestamp(), transcripts(claude)
    ages = [29, 24, 22, *[1] * (len(logs) - 3)]
    for log, age in zip(logs, ages, strict=True):
        os.utime(log, (now - age * DAY, now - age * DAY))
    reading.read_logs([claude / "projects"], reading.ReadingProgress())
    cleanup = places.cleanup()
    assert len(cleanup.moments) == len(logs)
    assert cleanup.within_week == 2  # those of 29 and 24 days: 1 and 6 days are left
    assert abs(cleanup.moments[0] - timezone.now() - dt.timedelta(days=1)) < dt.timedelta(hours=1)


def test_kept_transcripts_are_in_no_danger(claude):
    keeping.keep_logs()
    assert places.cleanup().moments == ()


def test_prompts_without_a_transcript_are_lost(claude):
    log = transcripts(claude)[0]
    copied_id = "11111111-1111-4111-8111-111111111111"
    log.rename(log.with_name(f"{copied_id}.jsonl"))
    lines = [
        {"display": "still there", "timestamp": 1_760_000_000_000, "project": "/p", "sessionId": copied_id},
        {"display": "lost", "timestamp": 1_760_000_100_000, "project": "/p", "sessionId": "gone"},
        {"display": f"lost, with {SECRET}", "timestamp": 1_760_000_200_000, "project": "/p", "sessionId": "gone"},
        {"display": "/clear", "timestamp": 1_760_000_300_000, "project": "/p", "sessionId": "gone"},
        {"display": "from before ids", "timestamp": 1_500_000_000_000, "project": "/old"},
        {"display": "no time", "timestamp": None},
        {"display": 7},
        ["no object"],
    ]
    history = "\n".join(json.dumps(line) for line in lines)
    (claude / "history.jsonl").write_text(history + '\n{"torn')
    lost = places.lost_prompts()
    assert [prompt.text.partition(",")[0] for prompt in lost] == ["lost", "lost", "from before ids"]
    assert SECRET not in lost[0].text
    assert lost[2].project == "/old"


def test_a_prompt_of_a_kept_session_is_not_lost(claude):
    """Its transcript is gone from Claude Code's folder, and is in the site's store."""
    keeping.keep_logs()
    from grading.models import Session

    session = Session.objects.exclude(started_at=None).first()
    for log in transcripts(claude):
        log.unlink()
    line = {"display": "kept", "timestamp": 1, "sessionId": session.external_id}
    (claude / "history.jsonl").write_text(json.dumps(line))
    assert places.lost_prompts() == []


def test_without_claude_code_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nowhere"))
    assert places.lost_prompts() == []
    assert places.cleanup().moments == ()
