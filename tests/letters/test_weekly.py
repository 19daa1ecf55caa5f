"""The weekly letter: written once, on Monday at seven, and sent once to each channel that gets it."""

import datetime as dt
import json
import threading

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection

from grading import letters
from grading.models import Notice, NoticeChannel, Session, WeeklyLetter
from grading.models.notices import About, Mail, Webhook
from grading.monitoring import notices
from grading.review import corrections
from tests.casts.notice import MailServer, WebServer, serving

pytestmark = pytest.mark.django_db

# The Monday of a week with sessions, and the moment at which the letter about it is due.
MONDAY = dt.date(2026, 3, 23)
DUE = dt.datetime(2026, 3, 30, 7, 0, tzinfo=dt.UTC)


@pytest.fixture
def worked(site):
    """Two sessions a day in the week and in the week before it."""
    for day in range(16, 30):
        for number in (0, 1):
            ended_at = dt.datetime(2026, 3, day, 12 + number, tzinfo=dt.UTC)
            site.session("code", ended_at=ended_at).judged(0.5 + 0.01 * (day % 7)).settle()


@pytest.fixture
def web(settings):
    with serving(WebServer()) as server:
        settings.NOTIFY_WEBHOOK, settings.NOTIFY_LETTER, settings.NOTIFY_TIMEOUT = server.url, True, 2
        settings.SITE_URL = "https://grades.example.test"
        yield server


def channel(target: Mail | Webhook, *, letters: bool) -> NoticeChannel:
    row = NoticeChannel(name="team", letters=letters)
    row.put(target, User.objects.get_or_create(username="olga")[0])
    return row


def write(moment: dt.datetime) -> bool:
    with time_machine.travel(moment, tick=False):
        return letters.write_due(moment)


@pytest.mark.parametrize(("late", "is_due"), [(-1, False), (0, True), (60 * 24 * 6, True)])
def test_due_from_monday_at_seven(site, worked, late, is_due):
    assert write(DUE + dt.timedelta(minutes=late)) is is_due
    assert WeeklyLetter.objects.filter(monday=MONDAY).exists() is is_due


def test_due_in_the_zone_of_the_site(site, worked, settings):
    settings.TIME_ZONE = "America/New_York"  # seven o'clock there is eleven in UTC
    assert not write(DUE)
    assert write(DUE + dt.timedelta(hours=4))


def test_written_once_with_five_sentences_at_most(site, worked, web):
    assert write(DUE)
    assert not write(DUE + dt.timedelta(minutes=10))
    letter = WeeklyLetter.objects.get()
    assert letter.monday == MONDAY
    assert 2 <= len(letter.sentences) <= 5
    assert letter.subject
    assert Notice.objects.filter(about=About.LETTER).count() == 1


def test_a_webhook_gets_the_sentences_and_the_address(site, worked, web):
    write(DUE)
    assert notices.send_due() == 1
    ((_path, _headers, body),) = web.posts
    message = json.loads(body)
    letter = WeeklyLetter.objects.get()
    assert (message["about"], message["week"]) == ("letter", "2026-03-23")
    assert message["sentences"] == letter.sentences
    assert message["title"] == letter.subject
    assert message["link"] == "https://grades.example.test/insight/letter/?week=2026-03-23"
    assert letter.sentences[0].split(",")[0] in message["text"]


def test_an_email_has_a_paragraph_for_each_sentence(site, worked, settings):
    with serving(MailServer()) as mail:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = mail.server_address
        channel(Mail(addresses=("ops@example.test",)), letters=True)
        write(DUE)
        assert notices.send_due() == 1
    letter = WeeklyLetter.objects.get()
    notice = letter.notices.get()
    assert notice.body.split("\n\n")[:-1] == letter.sentences
    assert letter.subject in notice.subject
    assert mail.recipients == ["ops@example.test"]


def test_only_channels_that_are_set_to_get_it(site, worked, web, settings):
    settings.NOTIFY_LETTER = False
    wanted = channel(Webhook(url="http://127.0.0.1:9/a"), letters=True)
    channel(Webhook(url="http://127.0.0.1:9/b"), letters=False)
    paused = channel(Webhook(url="http://127.0.0.1:9/c"), letters=True)
    paused.pause(paused=True)
    write(DUE)
    assert [notice.to for notice in WeeklyLetter.objects.get().notices.all()] == [wanted]


def test_a_week_without_sessions_sends_nothing(site, worked, web):
    """The row is written, so that nobody asks again each ten minutes."""
    empty = DUE + dt.timedelta(weeks=2)
    assert write(empty)
    assert not write(empty)
    assert WeeklyLetter.objects.get().sentences == []
    assert not Notice.objects.exists()


def test_a_letter_stays_as_it_was_written(site, worked, web):
    write(DUE)
    before = WeeklyLetter.objects.values_list("sentences").get()
    corrections.record_correction(
        Session.objects.latest("ended_at"), site.person("rita", "reviewer"), value=0.9, reason="it works"
    )
    assert not write(DUE + dt.timedelta(hours=1))
    assert WeeklyLetter.objects.values_list("sentences").get() == before


@pytest.mark.django_db(transaction=True)
def test_two_beats_send_one_letter(site, worked, web):
    """Both have composed it before either has written."""
    gate, results = threading.Barrier(2), []

    def beat() -> None:
        draft = letters.weekly.compose(MONDAY)
        gate.wait(timeout=30)
        results.append(letters.weekly.store(MONDAY, draft, DUE))
        connection.close()

    with time_machine.travel(DUE, tick=False):
        threads = [threading.Thread(target=beat) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == [False, True]
    assert WeeklyLetter.objects.count() == Notice.objects.count() == 1
