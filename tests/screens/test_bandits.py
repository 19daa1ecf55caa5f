"""The bandit's page: then and now on two clocks, what if, the draw, the log, a table beside every picture."""

import datetime as dt
import html as entities
import random
import re

import pytest
import time_machine
from django.contrib.auth.models import User
from django.utils import timezone

from bandit import arms
from bandit.models import Arm, Bandit, CalibrationVersion, LedgerEntry, Selection
from bandit.reading import posterior_of
from bandit.selection import complete, preview, select
from bandit.whatif import what_if_without
from grading.models import QuotaTransition
from grading.models.quota import QuotaState
from grading.screens.charts import posteriors
from grading.vocabulary import Outcome, Reason, Source
from tests.bandit import helpers
from tests.casts import quota as quota_cast
from tests.casts.page import flat
from tests.site import NOON, Site

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
PAGE, HARNESS = "/bandits/category/", "/bandits/harness/"
DAY = dt.timedelta(days=1)


def opened(client, path=PAGE):
    """The page, whose `context` says what it shows."""
    response = client.get(path)
    assert response.status_code == 200
    return response


def read(client, path=PAGE):
    return entities.unescape(flat(opened(client, path)))


def graded(site, value=0.6, *, ago=DAY, source=Source.JUDGE, **fields):
    """A session of that long ago, with its reward, known from its end on."""
    with time_machine.travel(NOON - ago, tick=False):
        return site.session(ended_at=timezone.now(), **fields).graded(source, value).settle()


def regraded(site, session, value, *, ago, source=Source.HUMAN):
    author = User.objects.first() if source == Source.HUMAN else None
    with time_machine.travel(NOON - ago, tick=False):
        site.on(session).graded(source, value, author=author).settle()


def mean(arm, now=None, **then):
    return posteriors.thousandths(posterior_of("category", now or NOON, **then).arms[arm].mean)


def row_of(html, arm):
    """The arm's row among the ridges."""
    return html.partition(f'<div class="name">{arm}</div>')[2].partition('<div class="brow')[0]


# ---- two clocks


def test_now_is_said_as_now(site, reviewer):
    graded(site)
    page = opened(reviewer)
    assert not page.context["moments"].is_past
    assert flat(page).count("<b data-words>now</b>") == 2
    assert 'class="note at-past"' not in flat(page)


def test_exploration_below_one_per_cent_is_not_shown_as_none(reviewer):
    assert "exploration 0.5 %" in read(reviewer)


def test_a_day_of_the_past_leaves_out_what_happened_later(site, reviewer):
    graded(site, 0.2, ago=9 * DAY)
    graded(site, 0.9, ago=DAY)
    html = read(reviewer, f"{PAGE}?at=2026-03-25")
    assert 'class="note at-past"' in html
    assert f">{mean('cross-repo', NOON - 6 * DAY)}<" in row_of(html, "cross-repo")
    assert f"Since then: cross-repo from {mean('cross-repo', NOON - 6 * DAY)} to {mean('cross-repo')}" in html
    assert 'href="/bandits/category/">Back to now' in html


def test_what_was_known_then_leaves_out_a_later_correction(site, reviewer):
    session = graded(site, 0.2, ago=9 * DAY)
    regraded(site, session, 0.9, ago=DAY)
    hindsight = read(reviewer, f"{PAGE}?at=2026-03-25")
    then = read(reviewer, f"{PAGE}?at=2026-03-25&known=2026-03-26T00:00")
    known_by = dt.datetime(2026, 3, 26, tzinfo=dt.UTC)
    believed = [mean("cross-repo", NOON - 6 * DAY, known_by=known) for known in (None, known_by)]
    assert believed[0] > believed[1]
    assert f">{believed[0]}<" in row_of(hindsight, "cross-repo")
    assert f">{believed[1]}<" in row_of(then, "cross-repo")
    assert 'href="?at=2026-03-25&known=2026-03-26T00:00"' in hindsight
    assert 'href="?at=2026-03-25"' in then


def test_the_policy_and_the_calibration_are_those_in_force_then(site, reviewer):
    graded(site, 0.2, ago=9 * DAY)
    category = Bandit.objects.get(name="category")
    CalibrationVersion.objects.create(
        bandit=category, version=2, by="otto", created_at=NOON - 2 * DAY,
        offsets=[{"arm": "cross-repo", "source": "judge", "stratum": "", "offset": 0.3}],
    )  # fmt: skip
    version = helpers.policy(half_life_days=7.0)
    earlier, later, now = (
        opened(reviewer, f"{PAGE}{query}").context["snapshot"]
        for query in ("?known=2026-03-28T00:00", "?known=2026-03-30T00:00", "")
    )
    assert (earlier.is_calibrated, earlier.version.half_life_days) == (False, 45)
    assert (later.calibration.version, later.is_calibrated, later.version.half_life_days) == (2, True, 45)
    assert (now.version, now.version.half_life_days) == (version, 7)


def test_what_cannot_be_shown_is_refused_in_words_and_the_page_stays(site, reviewer):
    graded(site)
    for query, said in (
        ("at=yesterday", "'yesterday' is not a date; expected a day such as 2026-03-31"),
        ("at=2026-04-01", "1 April 2026 is in the future"),
        ("at=1812-01-01", "'1812-01-01' is before the first data"),
        ("at=9999-12-31", "is in the future"),
        ("known=soon", "'soon' is not a time; expected a time such as 2026-03-31T19:40"),
        ("known=0001-01-01T00:00", "is before the first data"),
        ("known=9999-12-31T23:59%2B00:00", "is in the future"),
        ("known=2026-03-31T12:01", "31 Mar, 12:01 is in the future"),
        ("at=%00&known=%00", "'\\x00' is not a date"),
        ("session=nobody&value=.5", "No session has the number or id 'nobody'"),
        ("session=%00&value=.5", "Enter a session"),
        ("value=.5", "Enter a session"),
        ("session=99999999999999999999999&value=.5", "No session has the number or id"),
        ("without=rumour", "'rumour' has no weight in this bandit. Choose one of the sources that count: judge."),
        ("outage=17", "There was no outage '17'"),
        ("draw=0", "a number from 1 to 1,000,000; got '0'"),
        ("draw=%D9%A3", "a number from 1 to 1,000,000"),
        ("at=2026-03-01&draw=1", "work only with current figures"),
        ("at=2026-03-01&without=judge", "work only with current figures"),
    ):
        page = opened(reviewer, f"{PAGE}?{query}")
        (problem,) = page.context["problems"]
        assert said in problem
        assert flat(page).count('role="alert"') == 1, query
        assert "cross-repo" in [row.arm.name for row in page.context["rows"]], query


def test_a_value_that_is_no_grade_is_refused(site, reviewer):
    session = graded(site)
    for value in ("", "good", "1.5", "-0.1", "nan", "inf"):
        context = opened(reviewer, f"{PAGE}?session={session.pk}&value={value}").context
        assert (context["what_if"], len(context["problems"])) == (None, 1)


def test_text_of_the_address_is_shown_as_text(site, reviewer):
    graded(site)
    for query in ("at=<script>alert(1)</script>", "session=<script>alert(1)</script>&value=.5", "without=<script>"):
        assert b"<script>" not in reviewer.get(f"{PAGE}?{query}").content.partition(b"<main")[2]


def test_outages_stand_on_the_line_with_their_words(site, reviewer, settings):
    quota_cast.use(settings)
    quota_cast.quota(QuotaState.EXHAUSTED, changed_at=NOON - dt.timedelta(hours=5))
    graded(site)
    sliders = opened(reviewer).context["sliders"]
    (mark,) = sliders.marks
    assert mark.since == NOON - dt.timedelta(hours=5)
    assert sliders.last == mark.label
    assert 'class="f-alarm"' in sliders.picture


# ---- what if


def moved(client, address, arm):
    """What the page says the question does to an arm."""
    return next(move for move in client.get(address).context["what_if"].moves if move.arm == arm)


def test_a_session_graded_otherwise_does_what_correcting_it_does(site, reviewer):
    session = graded(site, 0.32, source=Source.JOURNAL)
    graded(site, 0.7, category="code")
    before, entries = mean("cross-repo"), LedgerEntry.objects.count()
    html = read(reviewer, f"{PAGE}?session={session.pk}&value=.8")
    assert LedgerEntry.objects.count() == entries
    regraded(site, session, 0.8, ago=0 * DAY)
    outlook = posterior_of("category", NOON)
    assert f"cross-repo from {before} to {mean('cross-repo')}," in html
    assert f"to {outlook.next_100('cross-repo'):.0f} of 100" in html
    assert (
        f"if a person graded {session.short_id} .80. Nothing is saved. Dashed below: the estimate with this change."
        in html
    )
    assert 'class="if"' in row_of(html, "cross-repo")
    assert f'<td class="right">{mean("cross-repo")}</td>' in html.partition("Estimates</caption>")[2]


def test_a_session_is_found_by_its_number_its_id_and_the_end_of_its_id(site, reviewer):
    session = graded(site, external_id="018f3c5e-0000-7000-8000-00000a7b71a3")
    other = graded(site, external_id="018f3c5e-0000-7000-8000-00000b7b71a3")
    for text in (session.pk, f"%23{session.pk}", session.external_id, "0A7B71A3"):
        assert "if a person graded 018f3c5e .80" in read(reviewer, f"{PAGE}?session={text}&value=.8")
    several = read(reviewer, f"{PAGE}?session=71a3&value=.8")
    assert "Several sessions have an id that ends in '71a3'" in several
    assert other.external_id in several


def test_a_session_that_teaches_this_bandit_nothing_is_said(site, reviewer):
    session = graded(site, category=None)
    assert "ran no known arm of this bandit" in read(reviewer, f"{PAGE}?session={session.pk}&value=.8")


def test_a_source_left_out_counts_for_nothing(site, reviewer):
    graded(site, 0.9)
    graded(site, 0.1, source=Source.JOURNAL)
    _, after = what_if_without("category", "journal", NOON)
    html = read(reviewer, f"{PAGE}?without=journal")
    assert moved(reviewer, f"{PAGE}?without=journal", "cross-repo").mean_after == after.arms["cross-repo"].mean
    assert "if journal grades did not count" in html
    assert "<option>judge</option>" in html
    assert "<option selected>journal</option>" in html


def outage(settings, since, until):
    """The judge's quota was gone for that time; the address that thinks it away."""
    quota_cast.use(settings)
    quota = quota_cast.quota(QuotaState.OPEN)
    gone = QuotaTransition.objects.create(
        quota=quota, at=NOON - since, state=QuotaState.EXHAUSTED, reason=Reason.QUOTA_EXHAUSTED
    )
    QuotaTransition.objects.create(quota=quota, at=NOON - until, state=QuotaState.OPEN)
    return f"{PAGE}?outage={gone.pk}"


def test_an_outage_that_did_not_happen_is_an_estimate_and_says_over_what(site, reviewer, settings):
    for days in range(5, 8):
        graded(site, 0.8, ago=days * DAY)
    lost = [graded(site, 0.3, ago=DAY + dt.timedelta(minutes=each), source=Source.JOURNAL) for each in range(3)]
    graded(site, 0.3, ago=DAY, source=Source.JOURNAL, category="social")
    regraded(site, lost[0], 0.7, ago=0 * DAY, source=Source.JUDGE)
    address = outage(settings, 1.5 * DAY, 0.5 * DAY)
    html = read(reviewer, address)
    assert "This is an estimate for 2 of the 4 sessions that ended during the outage" in html
    assert "1 judged later, whose grade is used, 1 of arms without any verdict, left unchanged." in html
    promised = moved(reviewer, address, "cross-repo")
    assert posteriors.thousandths(promised.mean_before) == mean("cross-repo")
    for each in lost[1:]:
        # .775 is the mean of .8, .8, .8 and .7.
        regraded(site, each, 0.775, ago=0 * DAY, source=Source.JUDGE)
    assert posteriors.thousandths(promised.mean_after) == mean("cross-repo")


# ---- the draw


def test_what_is_tried_out_says_nothing_of_what_is_drawn(reviewer):
    names = [f"d-{number}" for number in range(8)]
    tried = [preview("category", name, NOON)[0].arm.name for name in names]
    drawn = [select(bandit="category", decision_id=name, supply=None, now=NOON).arm.name for name in names]
    assert tried != drawn


def test_the_draw_says_what_a_decision_would_say_beside_a_hundred_draws_and_what_is_expected(site, reviewer):
    graded(site, 0.9)
    page = opened(reviewer, f"{PAGE}?draw=3")
    assert not Selection.objects.exists()
    made, explained = preview("category", "preview-3", NOON)
    drawn = page.context["draw"]
    assert (drawn.chosen, list(drawn.sentences)) == (str(made.arm), explained["sentences"])
    card = flat(page).partition('id="draw"')[2].partition("</section>")[0]
    assert f"<strong>{made.arm}</strong>" in card
    assert '<input type="hidden" name="draw" value="4">' in card
    assert sum(arm.drawn for arm in drawn.arms) == 100
    assert sum(arm.expected for arm in drawn.arms) == pytest.approx(100)
    assert card.count("<svg") == len(drawn.arms) == Arm.objects.in_bandit("category").count()


def test_a_preview_writes_nothing_and_repeats():
    first, _ = preview("category", "d-1", NOON)
    again, _ = preview("category", "d-1", NOON)
    assert first.arm == again.arm
    assert not Selection.objects.exists()
    with pytest.raises(ValueError, match="the bandit 'lesson' doesn't choose an arm"):
        preview("lesson", "d-1", NOON)


def test_with_every_arm_left_out_the_draw_says_why(reviewer):
    Arm.objects.in_bandit("category").update(paused=True)
    drawn = opened(reviewer, f"{PAGE}?draw=1").context["draw"]
    assert (drawn.chosen, len(drawn.sentences)) == ("", 1)


# ---- the log


def decided(site, number, arm, ran=None):
    """A decision that insisted on `arm`, and ran to an end as `ran`, if that is told."""
    row = select(bandit="category", decision_id=f"d-{number}", supply=None, override=arm, now=NOON)
    if ran:
        session = site.session(ran).session
        complete(row, observation=session.observation, executed_arm=ran, now=NOON)
    return row


def log_of(client):
    return opened(client).context["log"]


def test_what_ran_as_something_else_is_counted_and_from_a_quarter_on_it_is_much_a11(site, reviewer):
    decided(site, 0, "code", "code")
    assert not log_of(reviewer).is_much
    for number in range(1, 16):
        decided(site, number, "code", "code")
    assert "16" in log_of(reviewer).agreement
    for number in range(16, 20):
        decided(site, number, "content", "code")
    log = log_of(reviewer)
    assert "(20 %), 4 times code for content" in log.agreement
    assert not log.is_much
    decided(site, 20, "content", "code")
    log = log_of(reviewer)
    assert "(25 %), 5 times code for content" in log.agreement
    assert log.is_much
    assert "at-much" in read(reviewer)


def test_running_decisions_say_nothing_of_agreement(site, reviewer):
    decided(site, 0, "code")
    log = log_of(reviewer)
    assert ([line.session for line in log.lines], log.is_much) == ([None], False)


def test_expected_chosen_and_executed_are_counted(site, reviewer):
    rows = [decided(site, 0, "code", "infra"), decided(site, 1, "code")]
    log = log_of(reviewer)
    shares = {share.title: share for share in log.shares}
    assert len(log.counted) == 2
    for arm, chosen, ran in (("code", 2, 0), ("infra", 0, 1)):
        assert shares[arm].expected == pytest.approx(sum(row.eligible[arm] for row in rows))
        assert (shares[arm].chosen, shares[arm].ran) == (chosen, ran)


def test_an_insistence_and_a_substitution_are_marked_and_the_whole_log_is_a_link(site, reviewer):
    decided(site, 0, "code", "infra")
    log = read(reviewer).partition("<h2>Decisions</h2>")[2]
    assert 'code <span class="pill line">insisted</span>' in log
    assert 'infra <span class="pill line">instead</span>' in log
    assert f"/bandit/selection/?bandit__id__exact={Bandit.objects.get(name='category').pk}" in log
    assert reviewer.get(f"/bandit/selection/?bandit__id__exact={Bandit.objects.first().pk}").status_code == 200


def test_arms_that_the_caller_left_out_are_named_without_the_apis_words(reviewer):
    select(bandit="category", decision_id="d-1", supply={"code": 2, "news": 0}, now=NOON)
    log = read(reviewer).partition("<h2>Decisions</h2>")[2]
    assert "content, cross-repo, infra, research, social, triage: not offered by the caller" in log
    assert "news: no work, according to the caller" in log


def test_decisions_of_later_days_are_not_of_the_past(site, reviewer):
    decided(site, 0, "code")
    assert opened(reviewer, f"{PAGE}?at=2026-03-20").context["log"].lines == []


# ---- numbers


def test_counts_and_means_of_each_kind_stand_side_by_side_i79(site, reviewer):
    for value in (0.2, 0.5, 0.6, 0.9):
        graded(site, value)
    site.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="the login had expired")
    table = read(reviewer).partition("Rewards behind the estimates")[2].partition("</table>")[0]
    row = table.partition('<th scope="row">cross-repo</th>')[2].partition("</tr>")[0]
    cells = re.findall(r'<td class="right">(.*?)</td>', row)
    assert cells[:5] == ["4", "2", ".550", ".550", "1"]
    for heading in ("Rewards", "Productive: above .5", "Raw mean", "Adjusted mean", "Infrastructure failures"):
        assert heading in re.sub("<[^>]+>", "", table)
    (ledger,) = re.findall(r'href="([^"]+)">ledger', row)
    listed = reviewer.get(ledger)
    assert listed.status_code == 200
    assert listed.context["cl"].result_count == 4


def test_with_a_price_on_cost_raw_and_less_its_cost_are_two_columns(site, reviewer):
    helpers.policy(cost_weight=0.1)
    graded(site, 0.6, cost_usd=2.0)
    html = read(reviewer)
    row = html.partition("Rewards behind")[2].partition('<th scope="row">cross-repo</th>')[2].partition("</tr>")[0]
    assert "Adjusted mean: less their cost" in html
    assert re.findall(r'<td class="right">(.*?)</td>', row)[2:4] == [".600", ".400"]
    assert "$2.00" in row
    assert "Adjusted: less 0.1 for each dollar." in html


def test_a_baseline_is_said_with_its_version(site, reviewer):
    for number in range(10):
        graded(site, 0.9, ago=(2 + number) * DAY, category="code")
        graded(site, 0.3, ago=(2 + number) * DAY, category="social")
    html = read(reviewer, HARNESS)
    version = posterior_of("harness", NOON).posterior.policy.version.rpartition("baseline/")[2]
    assert f'Residual: reward − category mean + mean of all, baseline version <span class="mono">{version}' in html
    assert re.search(r"−\.\d\d in code", html)
    assert "Adjusted mean: residual" in html
    assert "Residual" not in read(reviewer)


def test_a_comparison_comes_with_its_category_table_and_leaves_out_what_has_too_few_rewards(site, reviewer):
    too_few = "Too few rewards to compare. An arm is listed here once it has at least 20 rewards of the same"
    graded(site, 0.9, category="social")
    assert too_few in " ".join(read(reviewer, HARNESS).split())
    for number in range(20):
        graded(site, 0.5 + number % 2 / 10, ago=(1 + number % 4) * DAY, category="code")
    for _ in range(20):
        graded(site, 0.5, ago=DAY, category="infra")
    table = read(reviewer, HARNESS).partition('id="comparison"')[2].partition("</section>")[0]
    row = table.partition('<th scope="row">Claude Code</th>')[2].partition("</tr>")[0]
    cells = re.findall(r'<td class="right">(.*?)</td>', row)
    assert cells[0].startswith(".550 ")
    assert "± .020" in cells[0]
    assert "n 20" in cells[0]
    assert len(cells) == 1, "twenty rewards of one day are one afternoon's"
    assert "2 columns without such a cell are left out" in " ".join(table.split())
    assert 'id="comparison"' not in read(reviewer)


def test_a_verdict_to_come_is_counted_for_the_arm_of_harness_and_model(site, reviewer):
    opus = Arm.objects.create(bandit=Bandit.objects.get(name="model"), name="opus-4")
    session = site.session(model_arm=opus).graded(Source.JOURNAL, 0.4).settle()
    site.on(session).with_judge_job()
    html = read(reviewer, HARNESS)
    assert "1 pending" in row_of(html, "Claude Code × opus-4")
    assert "pending" not in row_of(html, "Claude Code").partition("</div></div>")[0]


# ---- which bandits


def test_names_have_no_page_and_no_tab(reviewer):
    assert reviewer.get("/bandits/model/").status_code == 404
    tabs = read(reviewer).partition('aria-label="Bandits"')[2].partition("</nav>")[0]
    assert re.findall(r'href="/bandits/(\w+)/"', tabs) == ["category", "harness", "lesson"]
    assert "Harness × model" in tabs


def test_a_probation_ends_on_the_page_with_its_first_rewards(site, reviewer):
    Arm.objects.in_bandit("category").filter(name="cross-repo").update(probation=True)
    for number in range(3):
        graded(site, ago=(1 + number) * DAY)
        assert ("on probation" in row_of(read(reviewer), "cross-repo")) == (number < 2)


def test_a_merged_arm_is_not_a_row_of_its_own(reviewer):
    arms = Arm.objects.in_bandit("category")
    arms.filter(name="social").update(merged_into=arms.get(name="news"))
    assert '<div class="name">social</div>' not in read(reviewer)


def test_each_arm_with_enough_rewards_says_how_its_level_moves(reviewer):
    today, level, dice = NOON.date(), 0.5, random.Random(1)
    for age in range(40, 0, -1):
        level = min(max(level + dice.gauss(0, 0.06), 0.1), 0.9)
        for each in (-0.1, 0, 0.1):
            helpers.reward(f"c{age}{each}", day=today - age * DAY, code=round(level + each, 6))
            helpers.reward(f"i{age}{each}", day=today - age * DAY, infra=0.5 + each)
    helpers.reward("n", day=today - DAY, news=0.5)
    stability = {row.arm.name: row.stability for row in opened(reviewer, PAGE).context["rows"]}
    assert re.fullmatch(r"changes by about \.0\d\d per day", stability["code"])
    assert (stability["infra"], stability["news"]) == ("steady", "")
    assert stability["code"] in row_of(read(reviewer), "code")


class TestBreaks:
    def teach(self):
        today = NOON.date()
        for age in range(30, 0, -1):
            for each in range(3):
                value = (0.2 if age <= 10 else 0.7) + (each - 1) / 10
                helpers.reward(f"c{age}-{each}", day=today - age * DAY, code=round(value, 6))
            helpers.reward(f"i{age}", day=today - age * DAY, infra=0.5)

    def of_code(self, client):
        return next(row for row in opened(client, PAGE).context["rows"] if row.arm.name == "code").broke

    def act(self, client, do, day="2026-03-21"):
        arm = Arm.objects.resolve("category", "code")
        return client.post(
            f"/bandits/category/arms/{arm.pk}/", {"do": do, "day": day, "why": "hard tickets"}, follow=True
        )

    def test_an_arm_that_broke_says_since_when_and_why_and_a_reviewer_may_not_change_it(self, reviewer):
        self.teach()
        assert self.of_code(reviewer).sentence == (
            "This arm changed on 21 March 2026: the mean of its 60 earlier rewards was .700, and the mean of its 30 "
            "later rewards is .200. The earlier rewards no longer count."
        )
        assert "Remove the break" not in str(flat(reviewer.get(PAGE)))
        assert self.act(reviewer, "keep").status_code == 403

    def test_an_operator_takes_it_back_and_lets_it_stand_and_one_that_is_none_is_refused_in_words(self, client):
        client.force_login(Site().person("otto", "operator"))
        self.teach()
        for day in ("2026-03-01", "x", ""):
            (said,) = [str(message) for message in self.act(client, "keep", day).context["messages"]]
            assert "no longer has a break on" in said or "enter the day of the break" in said, day
        response = self.act(client, "take_back")
        assert response.redirect_chain == [("/bandits/category/", 302)]
        assert self.of_code(client).sentence == (
            "otto (hard tickets) removed the break on 21 March 2026, so earlier rewards count again."
        )
        self.act(client, "keep")
        assert self.of_code(client).sentence == (
            "Rewards from before 21 March 2026 no longer count: otto confirmed this break (hard tickets)."
        )


# ---- what is shared by parts


def test_a_pair_says_what_it_shares_of_its_harness_and_its_model(reviewer):
    for name in ("codex/opus", "codex/haiku", "gptme/opus"):
        arms.add("harness", name, by="rita")
    for ago in range(1, 9):
        day = (NOON - ago * DAY).date()
        helpers.reward(f"s{ago}", bandit="harness", day=day, **{"codex/haiku": 0.8 + 0.1 * (-1) ** ago})
    rows = {row.arm.name: row for row in opened(reviewer, HARNESS).context["rows"]}
    prior = rows["codex/opus"].posterior.shared
    assert prior.mean > 0.5
    mean = posteriors.thousandths(prior.mean)
    said = f"starts from what is known about codex and opus: {mean}, weighted as {prior.strength:.1f}"
    assert rows["codex/opus"].shared == f"{said} observations"
    assert said in row_of(read(reviewer, HARNESS), "codex/opus")
    assert rows["codex"].shared.startswith("starts from what is known about codex: ")
    helpers.policy("harness", pooling=False)
    assert not any(row.shared for row in opened(reviewer, HARNESS).context["rows"])


def test_arms_without_parts_say_nothing_of_sharing(site, reviewer):
    graded(site)
    assert not any(row.shared for row in opened(reviewer).context["rows"])


def test_decisions_that_came_to_nothing_are_counted_by_agent(reviewer):
    for number in range(3):
        select(bandit="category", decision_id=f"e-{number}", agent="eve", supply=None, now=NOON - 2 * DAY)
    select(bandit="category", decision_id="e-9", agent="eve", supply=None, now=NOON)
    page = read(reviewer)
    assert "Of the last 4 decisions, 3 led to no session within a day (eve 3 of 4)." in page
    assert page.count("not used") == 2  # of the three that are listed


def test_the_page_says_where_the_cap_on_agents_acts(reviewer):
    day = NOON.date()
    for number in range(12):
        helpers.with_cost(f"a-{number}", 0.6, usd=None, arm="code", day=day - DAY, agent="alice", witness="hook")
    for number in range(25):
        helpers.with_cost(f"e-{number}", 1.0, usd=None, arm="social", day=day, agent="eve", witness="claimed")
    assert "25 sessions of eve on 31 Mar count as 10, because of the cap on agents" in read(reviewer)
    helpers.with_cost("a-s", 0.6, usd=None, arm="social", day=day - DAY, agent="alice", witness="hook")
    page = read(reviewer)
    assert "25 sessions of eve on 31 Mar count as 3, because of the cap on agents" in page
    assert "of alice on" not in page
