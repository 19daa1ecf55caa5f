"""One name for one thing (L13): spellings meet, strangers are refused with the nearest name."""

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from bandit.models import Arm, ArmAlias, Bandit, UnknownArm, UnknownBandit
from bandit.names import canonical, nearest


@pytest.mark.parametrize(
    "text", ["cross-repo", "Cross Repo", " CROSS_repo ", "cross--repo", "crossrepo", "cross\0repo"]
)
@pytest.mark.django_db
def test_every_spelling_names_the_same_arm(text):
    assert Arm.objects.resolve("category", text).name == "cross-repo"


@pytest.mark.django_db
def test_an_unknown_arm_names_the_nearest_and_makes_nothing():
    before = Arm.objects.count()
    with pytest.raises(UnknownArm, match=r"has no arm 'newz'. Did you mean 'news'?.*Add the arm, or an alias"):
        Arm.objects.resolve("category", "newz")
    assert Arm.objects.count() == before


@pytest.mark.django_db
def test_an_unknown_bandit_lists_those_there_are():
    with pytest.raises(UnknownBandit, match="no bandit 'moods'; there are: category, harness, lesson, model"):
        Bandit.objects.named("moods")


@pytest.mark.django_db
def test_an_alias_of_one_bandit_is_unknown_in_another():
    with pytest.raises(UnknownArm):
        Arm.objects.resolve("harness", "cross-repo")


@pytest.mark.django_db
def test_two_path_spellings_never_split_an_arm():
    """I62, two spellings of one arm: impossible. 224 arms were stranded; here spellings meet in one row, and a rename
    is an alias.
    """
    bandit = Bandit.objects.get(name="lesson")
    Arm.objects.create(bandit=bandit, name="Lessons/Git_Workflow.md")
    with pytest.raises(IntegrityError), transaction.atomic():
        Arm.objects.create(bandit=bandit, name="lessons/git-workflow.md")


@pytest.mark.django_db
def test_an_alias_that_is_already_taken_is_refused_in_words():
    code, infra = (Arm.objects.resolve("category", name) for name in ("code", "infra"))
    with pytest.raises(ValidationError, match="is an arm of its own"):
        ArmAlias(arm=code, alias="Infra").full_clean(exclude=["bandit"])
    with pytest.raises(ValidationError, match="already; remove it there first"):
        ArmAlias(arm=code, alias="Infrastructure").full_clean(exclude=["bandit"])
    with pytest.raises(ValidationError, match="already an alias of infra"):
        Arm(bandit=infra.bandit, name="infrastructure").full_clean()


def test_nothing_near_is_nothing_suggested():
    assert nearest("qqqqq", ["code", "infra"]) is None
    assert canonical("  --A__b  c- ") == "a-b-c"
