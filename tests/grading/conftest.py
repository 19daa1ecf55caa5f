"""What the tests here share: the simulator, as the site's judge; and two reviewers."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def sim(settings) -> Iterator:
    """The site's judge. A module may override it to say more: `def sim(sim, settings)`."""
    from grading.simulator import Simulator
    from tests.grading import judge_cast

    with Simulator() as running:
        judge_cast.use(settings, running)
        yield running


@pytest.fixture
def rita():
    return _reviewer("rita")


@pytest.fixture
def omar():
    return _reviewer("omar")


def _reviewer(name: str):
    from tests import cast

    return cast.person(name, "reviewer")
