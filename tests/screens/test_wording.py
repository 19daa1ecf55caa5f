"""How numbers are written: missing is a dash, grades are .32, money is $1.99, a minus is a minus."""

import datetime as dt

import pytest

from grading.templatetags import gradingsite_tags as tags


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (tags.number, 0.32, ".32"), (tags.number, 0.0, ".00"), (tags.number, 1.0, "1"), (tags.number, None, "–"),
        (tags.mean3, 0.5834, ".583"), (tags.mean3, None, "–"), (tags.signed, 0.02, "+.020"),
        (tags.signed, -0.0204, "−.020"), (tags.signed2, 0.48, "+.48"), (tags.signed2, None, "–"),
        (tags.usd, 1.99, "$1.99"), (tags.usd, 0.34, "$0.34"), (tags.usd, 0.069, "6.9 ¢"), (tags.usd, 0, "$0"),
        (tags.usd, None, "–"), (tags.weight, 0.3, ".3"), (tags.weight, 1.0, "1"), (tags.weight, 0.0, "0"),
        (tags.amount, 0.0, "0"), (tags.amount, 0.5, ".50"), (tags.signed2, -0.004, "+.00"),
        (tags.short_number, 18_400, "18.4 k"), (tags.short_number, 900, "900"), (tags.short_number, None, "–"),
        (tags.duration, 42, "42 s"), (tags.duration, 2040, "34 min"), (tags.duration, 27_360, "7 h 36 min"),
        (tags.duration, 7200, "2 h"), (tags.duration, 200_000, "2 d"), (tags.duration, None, "–"),
        (tags.percent, 90.909, "90.9"), (tags.percent, None, "–"), (tags.share_of_one, 0.97, "97 %"),
        (tags.signed_count, 9, "+9"), (tags.signed_count, -2, "−2"), (tags.stamp, None, "–"),
        (tags.of_100, None, "–"), (tags.of_100, 0.0, "0"), (tags.of_100, 0.3, "<1"), (tags.of_100, 33.6, "34"),
        (tags.probability, None, "–"), (tags.probability, 0.0, ".00"), (tags.probability, 0.0007, "<.01"),
        (tags.probability, 0.69, ".69"), (tags.probability, 0.998, ">.99"), (tags.probability, 1.0, "1"),
        (tags.lead, "Reward .60, final. What it left.", "Reward .60, final."),
        (tags.rest, "Reward .60, final. What it left.", "What it left."), (tags.lead, None, ""),
    ],
)  # fmt: skip
def test_numbers_are_written_one_way(write, value, written):
    assert write(value) == written


def test_a_moment_of_another_year_names_the_year():
    assert tags.stamp(dt.datetime(2001, 3, 31, 9, 47, tzinfo=dt.UTC)) == "31 Mar 2001, 09:47"
