"""The review desk's pages and forms, as a browser without script would use them."""

import datetime as dt
import re

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from bandit.models import Arm
from bandit.reading import posterior_of
from grading.models import Comment, Flag, Grade, Reveal, ReviewAnswer, ReviewItem, Session
from grading.models.review import Answer, ItemState, QueueEntry
from grading.review import answers, claims, corrections, notes, promises
from grading.reward import calibrating, rewards
from grading.reward.explain import number
from grading.templatetags.gradingsite_tags import mean3
from grading.vocabulary import Reason, Source
from tests.bandit.helpers import buckets
from tests.casts import calibration as calibration_cast
from tests.casts import desk as desk_cast
from tests.casts.page import flat
from tests.site import NOON, Site

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def desk(django_db_setup, django_db_blocker):
    """A reviewer's browser, and a session that only its journal has graded. What a test does to them is undone."""
    with django_db_blocker.unblock(), Site().rolled_back():
        client = Client()
        client.force_login(Site().person("rita", "reviewer"))
        yield client, desk_cast.by_journal(title="Add a retry guard").pk


@pytest.fixture
def reviewer(desk):
    return desk[0]


@pytest.fixture
def rita(desk):
    return User.objects.get(username="rita")


@pytest.fixture
def session(desk):
    return Session.objects.get(pk=desk[1])


def hidden(html: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', html)
    assert found, name
    return found[1]


def form_in(html: str) -> dict[str, str]:
    """What the page's form holds."""
    return {name: hidden(html, name) for name in ("claim", "seen_revision", "seen_evidence", "opened")}


def opened(client, session) -> dict[str, str]:
    """The form of a page opened now."""
    return form_in(client.get(f"/review/{session.pk}/").content.decode())


def post(client, session, form, answer="grade", *, follow=False, **fields):
    """The reply to the form with this answer."""
    return client.post(f"/review/{session.pk}/answer/", {**form, "answer": answer, **fields}, follow=follow)


def send(client, session, answer="grade", *, follow=False, **fields):
    """The reply to the form of a page opened now."""
    return post(client, session, opened(client, session), answer, follow=follow, **fields)


def text(reply) -> str:
    """The page without addresses of static files, whose hashes may look like a grade."""
    return re.sub(r"/static/[^\"]+", "", flat(reply))


def refused(reply) -> bool:
    """Whether the page came back to say what is wrong."""
    return reply.status_code == 422 and reply.context["flash"].is_error


def wants_a_reason(reply) -> bool:
    """Whether it came back for want of a reason, at its field."""
    return refused(reply) and reply.context["flash"].field_id == "id_reason"


# --- the queue --------------------------------------------------------------------------------------------------------


def test_review_claims_what_comes_first_and_each_answer_leads_to_the_next_with_what_it_did(reviewer, rita):
    first, second = desk_cast.queue_of(2)
    reply = reviewer.get("/review/", follow=True)
    assert reply.redirect_chain[-1][0] == f"/review/{first.pk}/"
    item = ReviewItem.objects.get(session=first)
    assert item.claimed_by == rita
    html = text(reply)
    assert item.claim == hidden(html, "claim")
    assert reply.context["claim"].until == item.claimed_until
    reply = post(reviewer, first, form_in(html), value=".80", reason="the PR was merged", follow=True)
    assert reply.redirect_chain[-1][0].startswith(f"/review/{second.pk}/?saved=")
    answer = ReviewAnswer.objects.get()
    said = reply.context["flash"]
    assert (said.undo, said.is_error) == (answer.pk, False)
    assert re.search(r" \.80: cross-repo from \.\d{3} to \.\d{3}", said.text)
    held = rewards.live(first)
    assert (held.value, held.source, held.final) == (0.8, "human", True)
    grade = Grade.objects.get(source=Source.HUMAN)
    assert (grade.author.username, grade.detail) == ("rita", "the PR was merged")
    assert answer.seconds is not None
    assert answer.seconds < 60
    assert ReviewItem.objects.get(session=first).state == ItemState.DONE
    # After the last one, the empty state says what was saved.
    reply = post(reviewer, second, form_in(text(reply)), value=".4", follow=True)
    assert reply.context["everyone"].open == 0
    assert reply.context["flash"].undo == ReviewAnswer.objects.get(session=second).pk
    assert 'id="undo-last"' in text(reply)


def test_an_empty_queue_says_what_would_come_and_what_to_do(reviewer):
    reply = reviewer.get("/review/")
    assert (reply.context["everyone"].open, reply.context["slice"]) == (0, 0.2)
    assert 'href="/sessions/"' in text(reply)


def test_the_rail_is_in_the_order_of_the_queue_and_says_why_and_how_many_more_there_are(site, reviewer):
    entries = [QueueEntry.SLICE if number % 3 else QueueEntry.RULE for number in range(84)]
    rows = [Session(agent=site.agent(), external_id=f"before-{number}", ended_at=NOON) for number in range(84)]
    said = {"slice_probability": 0.2, "impact": 100, "why": "1 pull request, yet no real grade"}
    ReviewItem.objects.bulk_create(
        ReviewItem(session=row, entered_as=entry, **said)
        for row, entry in zip(Session.objects.bulk_create(rows), entries, strict=True)
    )
    desk_cast.queue_of(22)
    reply = reviewer.get("/review/", follow=True)
    rail = reply.context["rail"]
    assert (rail.total, len(rail.rows), rail.more) == (106, 100, 6)
    assert [index + 1 for index, row in enumerate(rail.rows[:20]) if row.by_chance] == [3, 6, 10, 13, 16, 20]
    groups = dict(rail.groups)
    assert list(groups) == ["Flagged or put here", "Expected to change most", "Random check of the judge"]
    assert sum(map(len, groups.values())) == 100
    assert groups["Random check of the judge"] == [row for row in rail.rows if row.by_chance]
    assert rail.rows[0] in groups["Flagged or put here"]
    assert rail.rows[0].current
    assert rail.rows[0].why == "flagged: 1 pull request, yet no real grade"
    assert rail.rows[2].why == "random check of the judge"
    assert rail.rows[-2].why == "nobody has graded a session like this yet"
    html = text(reply)
    assert html.count('class="qrow"') == 100
    assert html.count('aria-current="true"') == 1


def test_the_rail_says_what_people_corrected_on_sessions_like_it_and_not_what_the_judge_decided(reviewer, rita):
    for value in (0.9, 0.8):
        session = desk_cast.judged(0.5, category="code")
        answers.submit(session, rita, answer=Answer.GRADE, value=value, reason="seen")
    for index in range(2):
        desk_cast.waits(desk_cast.judged(0.5, category="code"), rank=index / 10)
    html = text(reviewer.get("/review/", follow=True))
    # the source, its kind and the stratum, each towards the wider one: (.1·5 + .7)/7 = .171, (.171·5 + .7)/7 = .222, …
    assert "expected to change the reward by .26; few sessions like this have been graded" in html


def test_a_choice_of_the_queue_stays_while_one_works(reviewer):
    desk_cast.queue_of(3)
    reply = reviewer.get("/review/", {"view": "arm=infra&evil=1"}, follow=True)
    assert reply.redirect_chain[-1][0].endswith("?arm=infra")
    assert reply.context["rail"].total == 1
    assert "answer/?arm=infra" in text(reply)
    none = reviewer.get("/review/?arm=nothing").context
    assert (none["rail"].total, none["everyone"].open) == (0, 3)


def test_what_another_holds_is_read_only_until_they_leave_and_what_was_typed_is_kept(site, reviewer, session):
    desk_cast.waits(session)
    mine = opened(reviewer, session)
    desk_cast.claims_run_out()
    client_of_olga = Client()
    client_of_olga.force_login(site.person("olga", "reviewer"))
    theirs = opened(client_of_olga, session)
    reply = reviewer.get(f"/review/{session.pk}/")
    assert reply.context["claim"].until is None
    assert "olga" in reply.context["claim"].why_not
    assert "disabled" in text(reply)
    assert "data-submit" not in text(reply)
    reply = post(reviewer, session, mine, value=".44", reason="mine")
    assert reply.status_code == 409
    assert "olga" in reply.context["flash"].text
    assert 'value=".44"' in text(reply)
    assert 'value="mine"' in text(reply)
    assert not Grade.objects.filter(source=Source.HUMAN).exists()
    client_of_olga.post(f"/review/{session.pk}/release/", {"claim": theirs["claim"]})
    assert "data-submit" in text(reviewer.get(f"/review/{session.pk}/"))


def test_the_newest_page_of_one_person_has_the_session_and_takes_it_again_where_it_is_free(reviewer, session):
    item = desk_cast.waits(session)
    first, second = opened(reviewer, session), opened(reviewer, session)
    assert first["claim"] != second["claim"]
    item.refresh_from_db()
    assert item.claim == second["claim"]
    assert reviewer.post(f"/review/{session.pk}/renew/", {"claim": second["claim"]}).json()["until"]
    # Leaving the older page gives nothing away.
    reviewer.post(f"/review/{session.pk}/release/", {"claim": first["claim"]})
    item.refresh_from_db()
    assert item.claim == second["claim"]
    # The claim ended.
    claims.release(item, second["claim"])
    assert reviewer.post(f"/review/{session.pk}/renew/", {"claim": second["claim"]}).json()["until"]
    item.refresh_from_db()
    assert item.claim == second["claim"]


# --- answering --------------------------------------------------------------------------------------------------------


def test_what_is_no_grade_gets_a_clear_error(reviewer, session):
    form = opened(reviewer, session)
    for value in ("NaN", "-1", "-0.01", "1.5", "1.01", "abc", "1e999", ".123", "inf", "0x1", " ", ""):
        reply = post(reviewer, session, form, value=value, reason="because")
        assert reply.status_code == 422, value
        assert (reply.context["flash"].is_error, reply.context["flash"].field_id) == (True, "id_value"), value
    assert refused(post(reviewer, session, form, stop="none", reason="because"))
    assert not Grade.objects.filter(source=Source.HUMAN).exists()


def test_a_number_or_a_stop_is_taken_as_the_grade(site, reviewer, session):
    """A number that was typed after the stop was chosen comes before the stop."""
    form = opened(reviewer, session)
    for sent, stored in (
        ({"value": "0"}, 0.0),
        ({"value": "1"}, 1.0),
        ({"value": "1.00"}, 1.0),
        ({"value": "0.3"}, 0.3),
        ({"value": " .45 "}, 0.45),
        ({"value": "85"}, 0.85),
        ({"value": "05"}, 0.05),
        ({"stop": ".80"}, 0.8),
        ({"stop": "0"}, 0.0),
        ({"stop": "1", "value": ".5", "typed": ".5"}, 1.0),
        ({"stop": ".80", "value": ".83", "typed": ".80"}, 0.83),
    ):
        with site.rolled_back():
            post(reviewer, session, form, reason="because", **sent)
            assert rewards.live(session).value == stored, sent


def test_a_big_move_needs_a_reason_and_a_small_one_does_not(reviewer, session):
    form = opened(reviewer, session)
    reply = post(reviewer, session, form, stop=".80")
    assert wants_a_reason(reply)
    assert [stop.value for stop in reply.context["effect"].stops if stop.chosen] == [".80"]
    reply = post(reviewer, session, form, value=".80")
    assert wants_a_reason(reply)
    assert 'value=".80"' in text(reply)
    assert not wants_a_reason(post(reviewer, session, form, value=".50"))
    assert rewards.live(session).value == 0.5


def test_accepting_makes_the_reward_final_and_excluding_and_declining_need_a_reason(site, reviewer, session):
    item = desk_cast.waits(session, QueueEntry.RULE)
    form = opened(reviewer, session)
    with site.rolled_back():
        post(reviewer, session, form, "accept", value=".32")
        held = rewards.live(session)
        assert (held.value, held.final) == (0.32, True)
        assert ReviewAnswer.objects.get().answer == Answer.ACCEPT
    with site.rolled_back():
        assert refused(post(reviewer, session, form, "exclude"))
        post(reviewer, session, form, "exclude", reason="the log is another session's")
        assert rewards.live(session).value is None
        assert buckets() == []
    assert refused(post(reviewer, session, form, "cannot judge"))
    post(reviewer, session, form, "cannot judge", reason="the log is empty")
    item.refresh_from_db()
    assert item.state == ItemState.DISMISSED


def test_skipping_gives_it_back_to_others_and_says_so(reviewer, session):
    item = desk_cast.waits(session)
    reply = send(reviewer, session, "skip", reason="too long", follow=True)
    assert (reply.template_name, reply.context["everyone"].open) == ("desk/review_empty.html", 1)
    item.refresh_from_db()
    assert (item.state, item.claim) == (ItemState.OPEN, "")
    answer = ReviewAnswer.objects.get()
    assert answer.answer == Answer.SKIP
    line, *_ = reviewer.get(f"/review/{session.pk}/").context["history"]
    assert (line.undo, line.detail) == (answer.pk, "too long")


def test_a_double_submit_records_once(reviewer, session):
    desk_cast.waits(session)
    form = opened(reviewer, session)
    for _ in range(2):
        post(reviewer, session, form, value=".4")
    assert ReviewAnswer.objects.count() == 1
    assert Grade.objects.filter(source=Source.HUMAN).count() == 1


def test_a_stale_form_is_refused_with_the_difference_and_then_taken_on_purpose(site, reviewer, session):
    """I149: somebody answered meanwhile, a verdict came, or more evidence."""
    desk_cast.waits(session)
    form = opened(reviewer, session)
    with site.rolled_back():
        site.on(session).with_file("journal", b"and another journal", "late.md")
        reply = post(reviewer, session, form, value=".40")
        assert reply.status_code == 409
        assert reply.context["flash"].added == "journal late.md"
    with site.rolled_back():
        site.on(session).judged(0.17).settle()
        reply = post(reviewer, session, form, value=".40")
        assert reply.status_code == 409
        assert ".17" not in text(reply)
        assert reply.context["blind"]
    site.on(session).graded(Source.TRAJECTORY, 0.55).settle()
    reply = post(reviewer, session, form, value=".40")
    assert reply.status_code == 409
    seen, held = session.settlements.order_by("revision")
    said = reply.context["flash"]
    assert (said.is_error, said.then, said.now) == (True, seen.sentence, held.sentence)
    assert reply.context["effect"].value == 0.4
    assert not Grade.objects.filter(source=Source.HUMAN).exists()
    post(reviewer, session, form_in(text(reply)), value=".40")
    assert rewards.live(session).value == 0.4


def test_a_session_that_never_waited_can_be_graded_and_stays_on_the_desk(reviewer, session):
    reply = send(reviewer, session, value=".4")
    assert reply.url.startswith(f"/review/{session.pk}/?saved=")
    assert rewards.live(session).value == 0.4


def test_the_page_of_a_session_leads_to_its_desk(reviewer, session):
    assert f'href="/review/{session.pk}/"' in text(reviewer.get(f"/sessions/{session.pk}/"))


# --- what it does -----------------------------------------------------------------------------------------------------


def effect(client, session, value):
    return client.get(f"/review/{session.pk}/effect/", {"value": value})


def test_the_effect_shows_before_and_after_for_each_bandit_and_saves_nothing(reviewer, session):
    before = buckets()
    reply = effect(reviewer, session, ".8")
    found = reply.context["effect"]
    assert (found.current, found.moves, found.needs_reason) == (0.32, pytest.approx(0.48), True)
    assert found.band["name"] == "strong"
    assert [move.arm for move, _ in found.arms] == ["cross-repo", "claude-code"]
    assert 'data-names="Submit .80"' in text(reply)
    assert text(reply).count('class="change"') == 2
    assert "Mean of Claude Code" in text(reply)
    assert buckets() == before


def test_the_effect_names_an_arm_by_the_title_that_an_operator_gave_it(reviewer, session):
    Arm.objects.filter(bandit__name="harness", name="claude-code").update(title="Claude <on laptops>")
    assert "Mean of Claude &lt;on laptops&gt;" in text(effect(reviewer, session, ".8"))


def test_the_effect_says_what_saving_then_does_and_the_preview_button_needs_no_script(reviewer, session):
    """To the last digit that is shown."""
    promised = [move for move, _ in effect(reviewer, session, ".83").context["effect"].arms]
    form = opened(reviewer, session)
    reply = post(reviewer, session, form, value=".8", preview="yes")
    found = reply.context["effect"]
    assert (found.button, found.arms[0][0].arm) == ("Submit .80", "cross-repo")
    assert "Submit .80" in text(reply)
    assert not ReviewAnswer.objects.exists()
    post(reviewer, session, form, value=".83", reason="merged")
    now = timezone.now()
    assert [move.bandit for move in promised] == ["category", "harness"]
    for move in promised:
        outlook = posterior_of(move.bandit, now)
        assert mean3(move.mean_after) == mean3(outlook.arms[move.arm].mean)
        assert round(move.share_after) == round(outlook.next_100(move.arm))


def test_the_first_grade_by_a_person_says_why_a_mean_moves_the_other_way(site, reviewer):
    """Fallback grades count by what people's grades show, so that the first of these moves a mean away from itself."""
    for day in range(1, 31):
        at = timezone.now() - dt.timedelta(days=day)
        session = site.session("code", ended_at=at).graded(Source.TRAJECTORY, 0.75 if day % 2 else 0.65).settle()
        site.session("infra", ended_at=at).graded(Source.TRAJECTORY, 0.4).settle()
    reply = effect(reviewer, session, ".70")
    move = reply.context["effect"].arms[0][0]
    assert move.mean_after < move.mean_before < 0.7
    before, after = (f"{n:.1f}" for n in (move.observations_before, move.observations_after))
    why = f"Its 30 sessions then count as {after} observations instead of {before}, because the grades of people and"
    assert why in text(reply)
    saved = text(send(reviewer, session, value=".70", follow=True))
    assert why.replace("then", "now") in saved
    assert f"counted as {after} observations" not in saved
    html = text(reviewer.get("/bandits/category/"))
    assert "of them from 29 sessions without a confirmed grade" in html


def test_an_effect_on_settled_arms_needs_no_explanation(site, reviewer, session):
    assert "instead of" not in text(effect(reviewer, session, ".8"))


def test_the_effect_of_no_grade_says_so(reviewer, session):
    for value in ("NaN", "2", "<b>"):
        reply = effect(reviewer, session, value)
        found = reply.context["effect"]
        assert found.problem, value
        assert (found.value, found.arms) == (None, ()), value
        assert "<b>" not in text(reply)


def test_a_session_without_an_arm_can_be_graded_too(site, reviewer):
    session = site.session(None, harness=None, category_claimed="gardening").settle()
    assert effect(reviewer, session, ".8").context["effect"].arms == ()
    assert "gardening" in text(reviewer.get(f"/review/{session.pk}/"))
    send(reviewer, session, value=".8")
    assert rewards.live(session).value == 0.8


# --- blind first ------------------------------------------------------------------------------------------------------


def test_until_a_person_graded_nothing_tells_the_judges_answer(reviewer, rita):
    session = desk_cast.judged(0.17, category="news")
    desk_cast.waits(session)
    reply = reviewer.get(f"/review/{session.pk}/")
    html = text(reply)
    for telling in (".17", "0.17", "sealed verdict", "focused fix", "claude-sonnet-5-5", "decides", "cited"):
        assert telling not in html.split("<main")[1].split("<dialog")[0], telling
    assert reply.context["blind"]
    assert reply.context["effect"].mark == ""
    reply = effect(reviewer, session, ".90")
    html = text(reply)
    assert ".17" not in html
    assert reply.context["effect"].blind
    mean = mean3(posterior_of("category", timezone.now()).arms["news"].mean)
    assert mean not in html
    notes.reveal(session, rita)
    assert "now .17" in text(reviewer.get(f"/review/{session.pk}/"))


def test_other_rows_of_the_queue_keep_the_judges_answers_back_too(reviewer, rita):
    shown, looked = desk_cast.by_journal(), desk_cast.judged(0.17)
    desk_cast.waits(looked)
    assert ".17" not in text(reviewer.get(f"/review/{shown.pk}/"))
    notes.reveal(looked, rita)
    assert ".17" in text(reviewer.get(f"/review/{shown.pk}/"))


def test_revealing_keeps_what_was_typed_as_the_blind_grade(reviewer, rita):
    session = desk_cast.judged(0.17)
    desk_cast.waits(session)
    reply = reviewer.post(
        f"/review/{session.pk}/reveal/", {**opened(reviewer, session), "value": ".60", "reason": "so"}
    )
    html = text(reply)
    assert reply.context["rationale"]["text"] == "A focused fix, tests pass [3]."
    assert 'event=3#e3">3</a>' in html
    assert "Based on event <a" in html
    assert 'value=".60"' in html
    assert 'value="so"' in html
    assert Reveal.objects.get().value == 0.6
    post(reviewer, session, form_in(html), value=".20", reason="the judge convinced me")
    answer = ReviewAnswer.objects.get()
    assert (answer.value, answer.blind_value, answer.revealed) == (0.2, 0.6, True)


def test_after_a_blind_grade_the_judges_stands_beside_it(reviewer):
    session = desk_cast.judged(0.62)
    desk_cast.waits(session)
    assert "Saved: you .70, judge .62; cross-repo" in text(send(reviewer, session, value=".70", follow=True))


def test_a_refusal_that_tells_of_the_hidden_reward_keeps_the_blind_grade_first(reviewer):
    session = desk_cast.judged(0.17)
    reply = send(reviewer, session, value=".80")
    assert wants_a_reason(reply)
    assert Reveal.objects.get().value == 0.8
    assert not reply.context["blind"]
    assert ".17" in text(reply)


def test_who_may_only_read_is_shown_everything(site, client):
    session = desk_cast.judged(0.17)
    desk_cast.waits(session)
    client.force_login(site.person("vera", "viewer"))
    reply = client.get(f"/review/{session.pk}/")
    assert ".17" in text(reply)
    assert (reply.context["blind"], reply.context["may_grade"]) == (False, False)
    assert "data-submit" not in text(reply)
    assert ReviewItem.objects.get().claim == ""
    assert client.get("/review/", follow=True).context["rail"].total == 1


# --- undo, flags, comments, several people ----------------------------------------------------------------------------


def test_undo_brings_back_what_held_exactly_and_the_session_to_the_desk_once(reviewer, session):
    desk_cast.waits(session)
    before = buckets()
    send(reviewer, session, value=".80", reason="merged")
    assert buckets() != before
    url = f"/answers/{ReviewAnswer.objects.get().pk}/undo/"
    reply = reviewer.post(url, follow=True)
    assert reply.redirect_chain[-1][0].startswith(f"/review/{session.pk}/")
    held = reply.context["settlement"]
    assert (held.value, held.final) == (0.32, False)
    assert ReviewAnswer.objects.latest("pk").answer == Answer.UNDO
    assert buckets() == before
    assert ReviewItem.objects.get().state == ItemState.OPEN
    reply = reviewer.post(url)
    assert reply.status_code == 422
    assert reply.context["flash"].is_error
    assert ReviewAnswer.objects.filter(answer=Answer.UNDO).count() == 1


def test_comments_and_flags_are_kept_with_their_names(reviewer, session):
    form = opened(reviewer, session)
    html = text(reviewer.post(f"/review/{session.pk}/comment/", {**form, "reason": "<b>look</b>"}, follow=True))
    assert "&lt;b&gt;look&lt;/b&gt;" in html
    assert Comment.objects.get().author.username == "rita"
    assert refused(reviewer.post(f"/review/{session.pk}/comment/", {**form, "reason": " "}))
    reply = reviewer.post(f"/review/{session.pk}/flag/", {**form, "reason": "wrong log"}, follow=True)
    assert [(flag.raised_by.username, flag.detail) for flag in reply.context["flags"]] == [("rita", "wrong log")]
    assert ReviewItem.objects.get().entered_as == QueueEntry.PERSON
    assert refused(reviewer.post(f"/review/{session.pk}/flag/", {**form, "reason": ""}))
    reviewer.post(f"/review/{session.pk}/flag/", {**form, "unflag": "yes"})
    assert not Flag.objects.open().exists()


def test_several_people_answer_and_one_answer_is_made_to_hold(site, reviewer, session):
    people = [site.person("omar", "reviewer"), site.person("olga", "operator")]
    item = desk_cast.waits(session)
    omar, olga = Client(), Client()
    for each, who in zip((omar, olga), people, strict=True):
        each.force_login(who)
    olga.post(f"/review/{session.pk}/assign/", {"to": "", "wanted": "2"})
    item.refresh_from_db()
    assert item.wanted == 2
    send(reviewer, session, value=".40")
    send(omar, session, value=".50")
    assert ReviewAnswer.objects.get(reviewer=people[0]).grade is None
    assert rewards.live(session).value == 0.4
    reply = olga.get(f"/review/{session.pk}/")
    assert len(reply.context["answers"]) == 2
    assert text(reply).count("/hold/") == 1  # where his does
    olga.post(f"/answers/{ReviewAnswer.objects.get(reviewer=people[0]).pk}/hold/")
    assert rewards.live(session).value == 0.5
    assert reviewer.post(f"/answers/{ReviewAnswer.objects.first().pk}/hold/").status_code == 403


def test_an_operator_assigns_and_others_are_told(site, reviewer, session):
    desk_cast.waits(session)
    olga = Client()
    olga.force_login(site.person("olga", "operator"))
    olga.post(f"/review/{session.pk}/assign/", {"to": "olga", "wanted": "1"})
    reply = reviewer.get("/review/")
    assert (reply.template_name, reply.context["everyone"].open) == ("desk/review_empty.html", 1)


# --- undo of a grade, by its row --------------------------------------------------------------------------------------


def graded(site, session) -> Grade:
    rewards_of = site.person("gina", "reviewer")
    corrections.record_correction(session, rewards_of, value=0.8, reason="merged")
    return Grade.objects.get(source=Source.HUMAN)


def test_anothers_grade_is_undone_with_a_reason_once(site, reviewer, session):
    before = buckets()
    url = f"/grades/{graded(site, session).pk}/undo/"
    assert "gina" in text(reviewer.get(url))
    reviewer.post(url, {"reason": " "})
    assert rewards.live(session).value == 0.8
    html = text(reviewer.post(url, {"reason": "wrong session"}, follow=True))
    assert rewards.live(session).value == 0.32
    assert "wrong session" in html
    assert buckets() == before
    reviewer.post(url, {"reason": "x"})
    assert Grade.objects.filter(reason=Reason.WITHDRAWN).count() == 1
    # Only a person's verdict has an undo.
    assert reviewer.get(f"/grades/{session.grades.get(source=Source.JOURNAL).pk}/undo/").status_code == 404


# --- who may, and how much is asked -----------------------------------------------------------------------------------


def test_a_viewer_changes_nothing(site, client, session):
    desk_cast.waits(session)
    client.force_login(site.person("vera", "viewer"))
    for act in ("answer", "reveal", "renew", "release", "comment", "flag", "assign"):
        assert client.post(f"/review/{session.pk}/{act}/", {"value": ".8", "answer": "grade"}).status_code == 403, act
    for url in ("/answers/1/undo/", "/answers/1/hold/", "/grades/1/undo/"):
        assert client.post(url).status_code == 403
    assert client.get(f"/review/{session.pk}/effect/?value=.8").status_code == 403
    assert f"/review/{session.pk}/" not in text(client.get(f"/sessions/{session.pk}/"))


def test_acts_are_posted(reviewer, session):
    for act in ("answer", "reveal", "renew", "release", "comment", "flag"):
        assert reviewer.get(f"/review/{session.pk}/{act}/").status_code == 405


@pytest.mark.parametrize("tab", ["transcript", "journal", "attempts"])
def test_each_tab_has_its_empty_state(reviewer, session, tab):
    html = text(reviewer.get(f"/review/{session.pk}/?tab={tab}"))
    assert 'class="empty"' in html
    assert html.count('aria-current="page"') == 3  # the tab, and Review in the top bar and its folded menu


# --- the scale, and what the evidence is ------------------------------------------------------------------------------


def test_the_desk_opens_with_the_evidence_and_links_pull_requests_of_known_sites_only(site, reviewer, session):
    pull = "https://github.com/octo/contrib/pull/641"
    evil = 'https://github.com@evil.test/a/b/pull/1"><script>alert(1)</script>'
    site.on(session).with_pull_request(pull).with_pull_request(evil)
    reply = reviewer.get(f"/review/{session.pk}/")
    assert reply.context["tab"] == "evidence"
    html = text(reply)
    assert f'<a class="link" href="{pull}" target="_blank" rel="noopener noreferrer" data-pr>contrib#641</a>' in html
    assert 'href="https://github.com@evil' not in html
    assert "<script>alert" not in html


# ---- what a few answers would do, until one is typed


def effects_of(html: str) -> str:
    return html.partition('data-part="effects">')[2].partition("</section>")[0]


def test_until_a_grade_is_typed_the_desk_shows_what_a_few_would_do(reviewer, session):
    page = flat(reviewer.get(f"/review/{session.pk}/"))
    moves = promises.answer_moves(session, (0.2, 0.8))
    for value, move in zip((".20", ".80"), moves, strict=True):
        assert f"<b>{value}</b>" in effects_of(page)
        assert f"{mean3(move.mean_before)} →</span> {mean3(move.mean_after)}" in effects_of(page)
    typed = flat(reviewer.get(f"/review/{session.pk}/effect/?value=.7"))
    assert "<b>.20</b>" not in typed
    assert "<b>.20</b>" in flat(reviewer.get(f"/review/{session.pk}/effect/?value="))


def test_a_blind_reviewer_sees_only_what_would_follow(site, reviewer):
    """The mean today depends on the verdict, which is hidden; the verdict is no row of its own."""
    session = desk_cast.judged(0.17, category="news")
    desk_cast.waits(session)
    moves = promises.answer_moves(session, (0.2, 0.8))
    effects = effects_of(text(reviewer.get(f"/review/{session.pk}/")))
    assert all(mean3(move.mean_after) in effects for move in moves)
    assert mean3(moves[0].mean_before) not in effects
    assert "→" not in effects
    assert ".17" not in effects


def test_the_desk_says_what_a_fallback_is_on_the_judges_scale(site, reviewer):
    with time_machine.travel(NOON, tick=False):
        calibration_cast.pairs(6)
        calibration_cast.put(site.person("otto", "operator"))
        session = calibration_cast.fell_back(0.2, arm="news")
        page = flat(reviewer.get(f"/review/{session.pk}/"))
    read = calibrating.calibrate(session, session.grades.get(source="trajectory"))
    value = number(read.value)
    assert f"≈ {value}<small>on the judge’s scale</small>" in page
    assert "<b>Reward .20, provisional.</b>" in page
    assert f"On the judge’s scale it is ≈ {value}." in page
