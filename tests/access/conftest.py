"""What the tests of coming in share: a clock that stands still, and a person.

The cast is read when it is asked for: its models are there only once the settings are loaded.
"""

import pytest
import time_machine


@pytest.fixture
def clock():

    from tests.site import NOON

    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def olga(site):

    return site.person("olga", "operator")
