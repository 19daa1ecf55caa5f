"""The arms' pages: who did what to an arm and why, and every act that moves rewards asked before it is done."""

import html
import re

import pytest

from bandit import arms, merging
from bandit.core.posterior import Outlook
from bandit.models import Arm, ArmAlias, ArmEvent, Bandit
from grading.vocabulary import Source
from tests.bandit.helpers import reward
from tests.casts.page import flat

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
PAGE = "/bandits/category/arms/"


def arm(name, bandit="category"):
    return Arm.objects.get(bandit__name=bandit, name=name)


def page_of(name, bandit="category"):
    return f"/bandits/{bandit}/arms/{arm(name, bandit).pk}/"


def read(client, url, **query):
    return html.unescape(flat(client.get(url, query)))


def said(client, url, **data):
    """What the site says after the act."""
    response = client.post(url, data, follow=True)
    return html.unescape(" ".join(str(message) for message in response.context["messages"]))


def row(page, name):
    return next(each for each in page.split("<tr>") if f">{name}</a>" in each)


def teach():
    for i in range(4):
        reward(f"n{i}", news=0.3)
        reward(f"s{i}", social=0.8)


def test_the_list_shows_states_names_sessions_and_events(operator):
    teach()
    arms.pause(arm("news"), by="rita", why="noise")
    arms.put_on_probation(arm("code"), by="rita")
    merging.merge(arm("triage"), arm("infra"), by="rita")
    page = read(operator, PAGE)
    assert "paused" in row(page, "news")
    assert 'data-label="Sessions">4</td>' in row(page, "news")
    assert "on probation, 0 of 3 sessions" in row(page, "code")
    assert "infrastructure" in row(page, "infra")
    assert "merged into infra" in row(page, "triage")
    assert "active" in row(page, "content")
    assert page.index(">news</a>") > page.index(">social</a>")
    assert "noise" in page


def test_the_list_says_what_kind_of_work_a_category_is(operator):
    Arm.objects.filter(pk=arm("news").pk).update(is_consumption=True)
    Arm.objects.filter(pk=arm("infra").pk).update(is_consumption=False, is_looking=True)
    page = read(operator, PAGE)
    assert '<span class="pill line">reads</span>' in row(page, "news")
    assert '<span class="pill line">checks</span>' in row(page, "infra")


def test_an_arm_is_added_on_probation_with_a_reason(operator):
    assert said(operator, PAGE, name="Data Work", title="Data", why="new", probation="on") == (
        "Data is now an arm of Category."
    )
    made = arm("data-work")
    assert (made.probation, made.is_low_stakes, made.events.get().why) == (True, False, "new")


def test_a_name_like_another_is_asked_about_first(operator):
    page = html.unescape(flat(operator.post(PAGE, {"name": "triags", "title": "T"})))
    assert "triags looks like triage, which already exists" in page
    assert 'value="T"' in page
    assert not Arm.objects.filter(name="triags").exists()
    assert said(operator, PAGE, name="triags", anyway="yes") == "triags is now an arm of Category."


def test_a_name_that_is_taken_is_refused(operator):
    page = html.unescape(flat(operator.post(PAGE, {"name": "Infrastructure", "title": "Infra"})))
    assert "'infrastructure' is an alias of infra" in page
    assert 'value="Infra"' in page
    assert "1 to 100 printable characters" in flat(operator.post(PAGE, {"name": "a\u200bb"}))


@pytest.mark.parametrize(
    ("do", "words"),
    [
        ("pause", "news is paused: it is not chosen until it is resumed."),
        ("try", "news is on probation."),
        ("retire", "news is retired; its record is kept."),
        ("resume", "news is not paused; nothing was changed"),
        ("dance", "Nothing was changed: expected one of pause,"),
    ],
)
def test_an_act_says_what_it_did_or_why_not(operator, do, words):
    assert words in said(operator, page_of("news"), do=do, why="a test")
    events = list(ArmEvent.objects.values_list("by", "why"))
    assert events == ([] if "othing" in words else [("otto", "a test")])


def test_a_page_of_an_arm_offers_what_can_be_undone(operator):
    for do, undo in (("pause", "resume"), ("retire", "return"), ("try", "pass")):
        assert f'value="{undo}"' not in read(operator, page_of("news"))
        said(operator, page_of("news"), do=do)
        assert f'value="{undo}"' in read(operator, page_of("news"))
        said(operator, page_of("news"), do=undo)
    assert ArmEvent.objects.count() == 6


def test_the_page_opens_with_what_the_arm_earned_and_folds_its_forms(site, operator):
    session = site.session("news", title="Read the changelog").judged(0.6).settle()
    page = read(operator, page_of("news"))
    sections = ["Estimate of the mean", "Grades behind it", "Latest sessions", "Change this arm"]
    places = [page.index(f"<h2>{title}</h2>") for title in sections]
    assert places == sorted(places)
    assert f'href="{session.get_absolute_url()}">Read the changelog</a>' in page
    assert 'href="/sessions/?category=news"' in page
    assert '<details class="card">' in page
    assert "<details open" not in page


def test_an_arm_that_never_ran_says_what_will_appear(operator):
    page = read(operator, page_of("news"))
    assert "No session has run this arm yet." in page
    assert "the prior, as no session has been graded yet" in page
    assert "Grades behind it" not in page


def test_a_merged_arms_sessions_are_listed_with_the_other_arm(site, operator):
    session = site.session("triage").judged(0.6).settle()
    merging.merge(arm("triage"), arm("infra"), by="rita")
    assert list(operator.get(page_of("infra")).context["latest"]) == [session]


def test_names_come_and_go(operator):
    assert said(operator, page_of("news"), do="alias", alias="Head Lines") == "head-lines is now an alias of news."
    assert "head-lines" in read(operator, page_of("news"))
    assert "'head-lines' is an alias of news" in said(operator, page_of("code"), do="alias", alias="head-lines")
    assert "is no longer an alias" in said(operator, page_of("news"), do="unalias", alias="head-lines")
    assert not ArmAlias.objects.filter(alias="head-lines").exists()
    assert said(operator, page_of("news"), do="rename", title="The news") == "The arm is now called The news."


def test_a_merge_is_previewed_in_words_and_then_does_that(operator):
    teach()
    into = arm("social").pk
    page = read(operator, page_of("news"), do="merge", into=into)
    (moves,) = re.findall(r"4 rewards move; social from (\.\d+ to \.\d+)", page)
    assert "Merge news into social: 4 rewards move</button>" in page
    assert not ArmEvent.objects.exists()
    done = said(operator, page_of("news"), do="merge", into=into, why="one thing")
    assert done == "news was merged into social: 4 rewards moved."
    shown = read(operator, "/bandits/category/")
    assert moves.split(" to ")[1] in shown
    assert "Split from social" in read(operator, page_of("news"))
    assert "news was merged into this arm" in read(operator, page_of("social"))


def test_a_part_is_asked_about_and_brings_everything_back(operator):
    teach()
    merging.merge(arm("news"), arm("social"), by="rita")
    assert "gets its rewards back unchanged" in read(operator, page_of("news"), do="part")
    assert said(operator, page_of("news"), do="part") == "news is a separate arm again: 4 rewards came back."
    assert "not merged into another arm" in html.unescape(
        str(next(iter(operator.get(page_of("news"), {"do": "part"}, follow=True).context["messages"])))
    )


def test_a_grade_that_changed_while_merged_is_settled_again_when_parted(site, operator):
    """The session ran as news, whatever news was merged into meanwhile."""
    session = site.session("news").judged(0.4).settle()
    merging.merge(arm("news"), arm("social"), by="rita")
    site.on(session).graded(Source.HUMAN, 0.9, author=site.person("rita", "reviewer")).settle()
    assert "1 that had changed in the meantime were settled again" in said(operator, page_of("news"), do="part")
    live = arm("news").entries.live().get()
    assert (live.value, live.grader.source) == (0.9, "human")
    assert not arm("social").entries.live().exists()


@pytest.mark.parametrize("into", ["", "x", "0", "9" * 25])
def test_a_merge_into_nothing_is_refused(operator, into):
    response = operator.get(page_of("news"), {"do": "merge", "into": into}, follow=True)
    assert "choose the arm" in str(next(iter(response.context["messages"])))
    assert "choose the arm" in said(operator, page_of("news"), do="merge", into=into)


def test_a_retirement_says_where_its_share_goes(operator):
    teach()
    page = read(operator, page_of("social"), do="retire")
    assert re.search(r"About \d+ of the next 100 sessions move from social to other arms", page)
    assert "Retire social</button>" in page


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.3, "Less than 1 of the next 100 sessions moves from social"),
        (1, "About 1 of the next 100 sessions moves from social"),
        (7, "About 7 of the next 100 sessions move from social"),
    ],
)
def test_a_retirement_tells_of_a_small_share(operator, monkeypatch, share, text):
    monkeypatch.setattr(Outlook, "next_100", lambda _self, _arm: share)
    assert text in read(operator, page_of("social"), do="retire")


def test_a_model_that_is_merged_names_its_pairs(operator):
    one, other = (arms.add("model", name, by="otto") for name in ("opus-4", "opus-4-5"))
    Arm.objects.create(bandit=Bandit.objects.get(name="harness"), name="codex/opus-4")
    page = read(operator, page_of("opus-4", "model"), do="merge", into=other.pk)
    assert "These combined arms stay separate: codex/opus-4." in page
    assert one.name in read(operator, "/bandits/model/arms/")


def test_a_bandit_without_arms_says_so(operator):
    assert "This bandit has no arms yet." in read(operator, "/bandits/lesson/arms/")
    assert operator.get("/bandits/moods/arms/").status_code == 404
    assert operator.get(f"/bandits/harness/arms/{arm('news').pk}/").status_code == 404


def test_viewers_read_and_may_not_act(site, client):
    client.force_login(site.person("vera", "viewer"))
    assert "<form" not in read(client, PAGE).partition("<main")[2]
    assert "<form" not in read(client, page_of("news")).partition("<main")[2]
    assert "Only operators can do this." in read(client, page_of("news"), do="retire")
    assert client.post(PAGE, {"name": "x"}).status_code == 403
    assert client.post(page_of("news"), {"do": "pause"}).status_code == 403
    assert not ArmEvent.objects.exists()


def test_djangos_page_adds_with_an_event_and_leaves_states_alone(operator):
    """A pause without an event would leave no trace of who did it."""
    bandit = Bandit.objects.get(name="category")
    none = {f"aliases-{part}_FORMS": "0" for part in ("TOTAL", "INITIAL")}
    operator.post("/bandit/arm/add/", {"bandit": bandit.pk, "name": "Poems", "paused": "on", **none})
    made = arm("poems")
    assert (made.paused, made.events.get().act, made.events.get().by) == (False, "added", "otto")
    page = operator.post("/bandit/arm/add/", {"bandit": bandit.pk, "name": "po\u200bems", **none})
    assert "has characters that nobody sees" in flat(page)
    before = Bandit.objects.get(name="category").revision
    change = {"title": "Verse", "paused": "on", "probation": "on", "is_low_stakes": "on", **none}
    operator.post(f"/bandit/arm/{made.pk}/change/", change)
    made = arm("poems")
    assert (made.title, made.paused, made.probation, made.is_low_stakes) == ("Verse", False, False, True)
    assert Bandit.objects.get(name="category").revision != before
