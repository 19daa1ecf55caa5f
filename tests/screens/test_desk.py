"""The review desk's pages and forms, as a browser without script would use them."""

import re

import pytest
from django.utils import timezone

from bandit.selection import posterior_of
from grading import review
from grading.models import Comment, Flag, Grade, Reveal, ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, QueueEntry
from grading.reward import rewards
from grading.templatetags.gradingsite_tags import mean3
from grading.vocabulary import Reason, Source
from tests.bandit.helpers import buckets
from tests.casts import desk as desk_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def session():
    return desk_cast.by_journal(title="Add a retry guard")


def hidden(html: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', html)
    assert found, name
    return found[1]


def opened(client, session) -> dict[str, str]:
    """What the page's form holds."""
    html = client.get(f"/review/{session.pk}/").content.decode()
    return {name: hidden(html, name) for name in ("claim", "seen_revision", "seen_evidence", "opened")}


def send(client, session, answer="grade", **fields):
    """The reply after the form was sent from a page opened now, followed to where it leads."""
    return client.post(
        f"/review/{session.pk}/answer/", {**opened(client, session), "answer": answer, **fields}, follow=True
    )


def text(reply) -> str:
    return flat(reply)


def refused(reply) -> bool:
    """Whether the page came back to say what is wrong."""
    return reply.status_code == 422 and reply.context["said"].grave


def wants_a_reason(reply) -> bool:
    """Whether it came back for want of a reason, at its field."""
    return refused(reply) and reply.context["said"].at == "id_reason"


# --- the queue --------------------------------------------------------------------------------------------------------


def test_review_goes_to_what_comes_first_and_claims_it(reviewer, rita):
    first, *_ = desk_cast.queue_of(3)
    reply = reviewer.get("/review/", follow=True)
    assert reply.redirect_chain[-1][0] == f"/review/{first.pk}/"
    item = ReviewItem.objects.get(session=first)
    assert item.claimed_by == rita
    assert item.claim == hidden(text(reply), "claim")
    assert reply.context["hold"].until == item.claimed_until


def test_an_empty_queue_says_what_would_come_and_what_to_do(reviewer):
    reply = reviewer.get("/review/")
    assert (reply.context["everyone"].open, reply.context["slice"]) == (0, 0.2)
    assert 'href="/sessions/"' in text(reply)


def test_the_rail_is_in_the_order_of_the_queue_and_says_why_and_how_many_more_there_are(reviewer):
    desk_cast.queue_of(106)
    reply = reviewer.get("/review/", follow=True)
    rail = reply.context["rail"]
    assert (rail.total, len(rail.rows), rail.more) == (106, 100, 6)
    assert [index + 1 for index, row in enumerate(rail.rows[:20]) if row.by_chance] == [3, 6, 10, 13, 16, 20]
    assert rail.rows[0].current
    assert rail.rows[0].why == "flagged: 1 pull request, yet no real grade"
    assert rail.rows[2].why == "place by chance: it says how good the judge is over all"
    assert rail.rows[-2].why.startswith("expected to move by .20: no answers yet on journal in ")
    html = text(reply)
    assert html.count('class="qrow"') == 100
    assert html.count('aria-current="true"') == 1


def test_the_rail_says_what_people_corrected_on_sessions_like_it_and_not_what_the_judge_decided(reviewer, rita):
    for value in (0.9, 0.8):
        session = desk_cast.judged(0.5, category="code")
        review.submit(session, rita, answer=Answer.GRADE, value=value, reason="seen")
    for index in range(4):
        desk_cast.waits(desk_cast.judged(0.5, category="code"), rank=index / 10)
    html = text(reviewer.get("/review/", follow=True))
    # the source, its kind and the stratum, each towards the wider one: (.1·5 + .7)/7 = .171, (.171·5 + .7)/7 = .222, …
    assert "expected to move by .26: few answers yet on sessions like it in code" in html


def test_a_choice_of_the_queue_stays_while_one_works(reviewer):
    desk_cast.queue_of(4)
    reply = reviewer.get("/review/", {"view": "arm=infra&evil=1"}, follow=True)
    assert reply.redirect_chain[-1][0].endswith("?arm=infra")
    assert reply.context["rail"].total == 1
    assert "answer/?arm=infra" in text(reply)
    none = reviewer.get("/review/?arm=nothing").context
    assert (none["rail"].total, none["everyone"].open) == (0, 4)


def test_what_another_holds_is_read_only_until_they_leave(site, client, reviewer, session):
    desk_cast.waits(session)
    client_of_olga = type(client)()
    client_of_olga.force_login(site.person("olga", "reviewer"))
    theirs = opened(client_of_olga, session)
    reply = reviewer.get(f"/review/{session.pk}/")
    assert reply.context["hold"].until is None
    assert "olga" in reply.context["hold"].why_not
    assert "disabled" in text(reply)
    assert "data-submit" not in text(reply)
    client_of_olga.post(f"/review/{session.pk}/release/", {"claim": theirs["claim"]})
    assert "data-submit" in text(reviewer.get(f"/review/{session.pk}/"))


def test_an_answer_while_another_holds_it_is_refused_and_what_was_typed_is_kept(site, client, reviewer, session):
    desk_cast.waits(session)
    mine = opened(reviewer, session)
    desk_cast.claims_run_out()
    other = type(client)()
    other.force_login(site.person("olga", "reviewer"))
    opened(other, session)
    reply = reviewer.post(
        f"/review/{session.pk}/answer/", {**mine, "answer": "grade", "value": ".44", "reason": "mine"}
    )
    assert reply.status_code == 409
    assert "olga" in reply.context["said"].text
    assert 'value=".44"' in text(reply)
    assert 'value="mine"' in text(reply)
    assert not Grade.objects.filter(source=Source.HUMAN).exists()


def test_the_newest_page_of_one_person_has_the_session(reviewer, session):
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


def test_a_claim_that_ran_out_is_taken_again_where_it_is_free(reviewer, session):
    item = desk_cast.waits(session)
    mine = opened(reviewer, session)
    review.release(item, mine["claim"])
    assert reviewer.post(f"/review/{session.pk}/renew/", {"claim": mine["claim"]}).json()["until"]
    item.refresh_from_db()
    assert item.claim == mine["claim"]


# --- answering --------------------------------------------------------------------------------------------------------


def test_a_grade_is_saved_and_the_next_is_shown_with_what_it_did(reviewer):
    first, second = desk_cast.queue_of(2)
    reply = send(reviewer, first, value=".80", reason="the PR was merged")
    assert reply.redirect_chain[-1][0].startswith(f"/review/{second.pk}/?saved=")
    answer = ReviewAnswer.objects.get()
    said = reply.context["said"]
    assert (said.undo, said.grave) == (answer.pk, False)
    assert re.search(r" \.80: cross-repo from \.\d{3} to \.\d{3}", said.text)
    held = rewards.live(first)
    assert (held.value, held.source, held.final) == (0.8, "human", True)
    grade = Grade.objects.get(source=Source.HUMAN)
    assert (grade.author.username, grade.detail) == ("rita", "the PR was merged")
    assert answer.seconds is not None
    assert answer.seconds < 60
    assert ReviewItem.objects.get(session=first).state == ItemState.DONE


def test_after_the_last_one_the_empty_state_says_what_was_saved(reviewer, session):
    desk_cast.waits(session)
    reply = send(reviewer, session, value=".4")
    assert reply.context["everyone"].open == 0
    assert reply.context["said"].undo == ReviewAnswer.objects.get().pk
    assert 'id="undo-last"' in text(reply)


@pytest.mark.parametrize("value", ["NaN", "-1", "-0.01", "1.5", "1.01", "abc", "1e999", ".123", "inf", "0x1", " ", ""])
def test_what_is_no_grade_gets_a_clear_error(reviewer, session, value):
    reply = send(reviewer, session, value=value, reason="because")
    assert reply.status_code == 422
    assert (reply.context["said"].grave, reply.context["said"].at) == (True, "id_value")
    assert not Grade.objects.filter(source=Source.HUMAN).exists()


@pytest.mark.parametrize(("value", "stored"), [("0", 0.0), ("1", 1.0), ("1.00", 1.0), ("0.3", 0.3), (" .45 ", 0.45)])
def test_what_is_a_grade_is_taken(reviewer, session, value, stored):
    send(reviewer, session, value=value, reason="because")
    assert rewards.live(session).value == stored


def test_a_big_move_needs_a_reason_and_a_small_one_does_not(reviewer, session):
    reply = send(reviewer, session, value=".80")
    assert wants_a_reason(reply)
    assert 'value=".80"' in text(reply)
    assert not wants_a_reason(send(reviewer, session, value=".50"))
    assert rewards.live(session).value == 0.5


def test_accepting_the_reward_makes_it_final(reviewer, session):
    send(reviewer, session, answer="accept", value=".32")
    held = rewards.live(session)
    assert (held.value, held.final) == (0.32, True)
    assert ReviewAnswer.objects.get().answer == Answer.ACCEPT


def test_excluding_takes_the_reward_away_and_needs_a_reason(reviewer, session):
    assert refused(send(reviewer, session, answer="exclude"))
    send(reviewer, session, answer="exclude", reason="the log is another session's")
    assert rewards.live(session).value is None
    assert buckets() == []


def test_what_cannot_be_judged_leaves_the_queue_with_a_reason(reviewer, session):
    item = desk_cast.waits(session, QueueEntry.RULE)
    assert refused(send(reviewer, session, answer="cannot judge"))
    send(reviewer, session, answer="cannot judge", reason="the log is empty")
    item.refresh_from_db()
    assert item.state == ItemState.DISMISSED


def test_skipping_gives_it_back_to_others(reviewer, session):
    item = desk_cast.waits(session)
    reply = send(reviewer, session, answer="skip")
    assert (reply.template_name, reply.context["everyone"].open) == ("desk/review_empty.html", 1)
    item.refresh_from_db()
    assert (item.state, item.claim) == (ItemState.OPEN, "")


def test_a_double_submit_records_once(reviewer, session):
    desk_cast.waits(session)
    form = {**opened(reviewer, session), "answer": "grade", "value": ".4"}
    for _ in range(2):
        reviewer.post(f"/review/{session.pk}/answer/", form)
    assert ReviewAnswer.objects.count() == 1
    assert Grade.objects.filter(source=Source.HUMAN).count() == 1


def test_a_stale_form_is_refused_with_the_difference_and_then_taken_on_purpose(site, reviewer, session):
    """I149: somebody answered meanwhile."""
    desk_cast.waits(session)
    form = opened(reviewer, session)
    site.on(session).graded(Source.TRAJECTORY, 0.55).settle()
    reply = reviewer.post(f"/review/{session.pk}/answer/", {**form, "answer": "grade", "value": ".40"})
    assert reply.status_code == 409
    seen, held = session.settlements.order_by("revision")
    said = reply.context["said"]
    assert (said.grave, said.then, said.now) == (True, seen.sentence, held.sentence)
    assert reply.context["effect"].value == 0.4
    html = text(reply)
    assert not Grade.objects.filter(source=Source.HUMAN).exists()
    again = {name: hidden(html, name) for name in form}
    reviewer.post(f"/review/{session.pk}/answer/", {**again, "answer": "grade", "value": ".40"})
    assert rewards.live(session).value == 0.4


def test_new_evidence_makes_a_form_stale_too(site, reviewer, session):
    form = opened(reviewer, session)
    site.on(session).with_file("journal", b"and another journal", "late.md")
    reply = reviewer.post(f"/review/{session.pk}/answer/", {**form, "answer": "grade", "value": ".40"})
    assert reply.status_code == 409
    assert reply.context["said"].added == "journal late.md"


def test_a_session_that_never_waited_can_be_graded_and_stays_on_the_desk(reviewer, session):
    reply = send(reviewer, session, value=".4")
    assert reply.redirect_chain[-1][0].startswith(f"/review/{session.pk}/?saved=")
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
    assert (found.held, found.moves, found.needs_reason) == (0.32, pytest.approx(0.48), True)
    assert found.band["name"] == "strong"
    assert [move.arm for move, _ in found.arms] == ["cross-repo", "claude-code"]
    assert 'data-names="Submit .80"' in text(reply)
    assert text(reply).count('class="change"') == 2
    assert buckets() == before


def test_the_effect_says_what_saving_then_does(reviewer, session):
    """To the last digit that is shown."""
    promised = [move for move, _ in effect(reviewer, session, ".83").context["effect"].arms]
    send(reviewer, session, value=".83", reason="merged")
    now = timezone.now()
    assert [move.bandit for move in promised] == ["category", "harness"]
    for move in promised:
        outlook = posterior_of(move.bandit, now)
        assert mean3(move.mean_after) == mean3(outlook.arms[move.arm].mean)
        assert round(move.share_after) == round(outlook.share_of_next_100(move.arm))


@pytest.mark.parametrize("value", ["NaN", "2", "<b>"])
def test_the_effect_of_no_grade_says_so(reviewer, session, value):
    reply = effect(reviewer, session, value)
    found = reply.context["effect"]
    assert found.say
    assert (found.value, found.arms) == (None, ())
    assert "<b>" not in text(reply)


def test_a_session_without_an_arm_can_be_graded_too(site, reviewer):
    session = site.session(None, harness=None, category_claimed="gardening").settle()
    assert effect(reviewer, session, ".8").context["effect"].arms == ()
    assert "gardening" in text(reviewer.get(f"/review/{session.pk}/"))
    send(reviewer, session, value=".8")
    assert rewards.live(session).value == 0.8


def test_the_preview_button_works_without_script(reviewer, session):
    reply = send(reviewer, session, value=".8", preview="yes")
    found = reply.context["effect"]
    assert (found.names, found.arms[0][0].arm) == ("Submit .80", "cross-repo")
    assert "Submit .80" in text(reply)
    assert not ReviewAnswer.objects.exists()


# --- blind first ------------------------------------------------------------------------------------------------------


def test_until_a_person_graded_nothing_tells_the_judges_answer(reviewer):
    session = desk_cast.judged(0.17, category="news")
    desk_cast.waits(session)
    reply = reviewer.get(f"/review/{session.pk}/")
    html = text(reply)
    for telling in (".17", "0.17", "sealed verdict", "focused fix", "claude-sonnet-5-5", "decides", "cited"):
        assert telling not in html.split("<main")[1].split("<dialog")[0], telling
    assert reply.context["blind"]
    reply = effect(reviewer, session, ".90")
    html = text(reply)
    assert ".17" not in html
    assert reply.context["effect"].blind
    mean = mean3(posterior_of("category", timezone.now()).arms["news"].mean)
    assert mean not in html


def test_other_rows_of_the_queue_keep_the_judges_answers_back_too(reviewer, rita):
    shown, looked = desk_cast.by_journal(), desk_cast.judged(0.17)
    desk_cast.waits(looked)
    assert ".17" not in text(reviewer.get(f"/review/{shown.pk}/"))
    review.reveal(looked, rita)
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
    assert 'value=".60"' in html
    assert 'value="so"' in html
    assert Reveal.objects.get().value == 0.6
    send(reviewer, session, value=".20", reason="the judge convinced me")
    answer = ReviewAnswer.objects.get()
    assert (answer.value, answer.blind_value, answer.revealed) == (0.2, 0.6, True)


def test_a_refusal_that_tells_of_the_hidden_reward_keeps_the_blind_grade_first(reviewer):
    session = desk_cast.judged(0.17)
    reply = send(reviewer, session, value=".80")
    assert wants_a_reason(reply)
    assert Reveal.objects.get().value == 0.8
    assert not reply.context["blind"]
    assert ".17" in text(reply)


def test_a_verdict_that_came_meanwhile_makes_the_form_stale_and_stays_hidden(site, reviewer, session):
    form = opened(reviewer, session)
    site.on(session).judged(0.17).settle()
    reply = reviewer.post(f"/review/{session.pk}/answer/", {**form, "answer": "grade", "value": ".40"})
    assert reply.status_code == 409
    assert ".17" not in text(reply)
    assert reply.context["blind"]


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


def test_undo_brings_back_what_held_exactly_and_the_session_to_the_desk(reviewer, session):
    desk_cast.waits(session)
    before = buckets()
    send(reviewer, session, value=".80", reason="merged")
    assert buckets() != before
    reply = reviewer.post(f"/answers/{ReviewAnswer.objects.get().pk}/undo/", follow=True)
    assert reply.redirect_chain[-1][0].startswith(f"/review/{session.pk}/")
    held = reply.context["settlement"]
    assert (held.value, held.final) == (0.32, False)
    assert ReviewAnswer.objects.latest("pk").answer == Answer.UNDO
    assert buckets() == before
    assert ReviewItem.objects.get().state == ItemState.OPEN


def test_undoing_twice_says_so(reviewer, session):
    send(reviewer, session, value=".40")
    url = f"/answers/{ReviewAnswer.objects.get().pk}/undo/"
    reviewer.post(url)
    reply = reviewer.post(url)
    assert reply.status_code == 422
    assert reply.context["said"].grave
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


def test_several_people_answer_and_one_answer_is_made_to_hold(site, client, session):
    people = [site.person("rita", "reviewer"), site.person("omar", "reviewer"), site.person("olga", "operator")]
    item = desk_cast.waits(session)
    rita, omar, olga = (type(client)() for _ in people)
    for each, who in zip((rita, omar, olga), people, strict=True):
        each.force_login(who)
    olga.post(f"/review/{session.pk}/assign/", {"to": "", "wanted": "2"})
    item.refresh_from_db()
    assert item.wanted == 2
    send(rita, session, value=".40")
    send(omar, session, value=".50")
    assert ReviewAnswer.objects.get(reviewer=people[1]).grade is None
    assert rewards.live(session).value == 0.4
    reply = olga.get(f"/review/{session.pk}/")
    assert len(reply.context["answers"]) == 2
    assert text(reply).count("/hold/") == 1  # where his does
    olga.post(f"/answers/{ReviewAnswer.objects.get(reviewer=people[1]).pk}/hold/", follow=True)
    assert rewards.live(session).value == 0.5
    assert rita.post(f"/answers/{ReviewAnswer.objects.first().pk}/hold/").status_code == 403


def test_an_operator_assigns_and_others_are_told(site, client, reviewer, session):
    desk_cast.waits(session)
    olga = type(client)()
    olga.force_login(site.person("olga", "operator"))
    olga.post(f"/review/{session.pk}/assign/", {"to": "olga", "wanted": "1"})
    reply = reviewer.get("/review/")
    assert (reply.template_name, reply.context["everyone"].open) == ("desk/review_empty.html", 1)


# --- undo of a grade, by its row --------------------------------------------------------------------------------------


def graded(site, session) -> Grade:
    rewards_of = site.person("gina", "reviewer")
    review.record_correction(session, rewards_of, value=0.8, reason="merged")
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


def test_only_a_persons_verdict_has_an_undo(reviewer, session):
    assert reviewer.get(f"/grades/{session.grades.get().pk}/undo/").status_code == 404


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


def test_an_answer_of_skip_says_so(reviewer, rita, session):
    desk_cast.waits(session)
    send(reviewer, session, answer="skip", reason="too long")
    assert ReviewAnswer.objects.get().answer == Answer.SKIP
    line, *_ = reviewer.get(f"/review/{session.pk}/").context["history"]
    assert (line.undo, line.detail) == (ReviewAnswer.objects.get().pk, "too long")


# --- the scale, and what the evidence is ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ({"value": "85"}, 0.85),
        ({"value": "05"}, 0.05),
        ({"stop": ".80"}, 0.8),
        ({"stop": "0"}, 0.0),
        ({"stop": "1", "value": ".5", "typed": ".5"}, 1.0),
        ({"stop": ".80", "value": ".83", "typed": ".80"}, 0.83),
    ],
)
def test_a_stop_is_the_grade_unless_another_number_was_typed(reviewer, session, sent, stored):
    send(reviewer, session, reason="because", **sent)
    assert rewards.live(session).value == stored


def test_a_stop_that_is_none_is_refused(reviewer, session):
    assert refused(send(reviewer, session, stop="none", reason="because"))
    assert not Grade.objects.filter(source=Source.HUMAN).exists()


def test_the_stop_that_was_chosen_comes_back_chosen(reviewer, session):
    reply = send(reviewer, session, stop=".80")
    assert wants_a_reason(reply)
    assert [stop.value for stop in reply.context["effect"].stops if stop.chosen] == [".80"]


def test_the_scale_keeps_a_hidden_reward_back(reviewer):
    session = desk_cast.judged(0.17)
    desk_cast.waits(session)
    assert reviewer.get(f"/review/{session.pk}/").context["effect"].mark == ""
    review.reveal(session, ReviewItem.objects.get().claimed_by)
    assert "now .17" in text(reviewer.get(f"/review/{session.pk}/"))


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
