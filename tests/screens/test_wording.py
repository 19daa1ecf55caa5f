"""How numbers are written: missing is a dash, grades are .32, money is $1.99, a minus is a minus."""

import datetime as dt

import pytest

from grading.templatetags import house


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (house.number, 0.32, ".32"), (house.number, 0.0, ".00"), (house.number, 1.0, "1"), (house.number, None, "–"),
        (house.mean3, 0.5834, ".583"), (house.mean3, None, "–"), (house.signed, 0.02, "+.020"),
        (house.signed, -0.0204, "−.020"), (house.signed2, 0.48, "+.48"), (house.signed2, None, "–"),
        (house.usd, 1.99, "$1.99"), (house.usd, 0.34, "$.34"), (house.usd, 0.069, "6.9 ¢"), (house.usd, 0, "$0"),
        (house.usd, None, "–"), (house.weight, 0.3, ".3"), (house.weight, 1.0, "1"), (house.weight, 0.0, "0"),
        (house.amount, 0.0, "0"), (house.coefficient, 1.324, "1.32"), (house.coefficient, -0.5, "−.50"),
        (house.coefficient, 0.0, ".00"), (house.coefficient, 10.0, "10.00"), (house.coefficient, None, "–"),
        (house.amount, 0.5, ".50"),
        (house.short_number, 18_400, "18.4 k"), (house.short_number, 900, "900"), (house.short_number, None, "–"),
        (house.lasting, 42, "42 s"), (house.lasting, 2040, "34 min"), (house.lasting, 27_360, "7 h 36 min"),
        (house.lasting, 7200, "2 h"), (house.lasting, 200_000, "2 d"), (house.lasting, None, "–"),
        (house.percent, 90.909, "90.9"), (house.percent, None, "–"), (house.share_of_one, 0.97, "97 %"),
        (house.signed_count, 9, "+9"), (house.signed_count, -2, "−2"), (house.stamp, None, "–"),
        (house.lead, "Reward .60, final. What it left.", "Reward .60, final."),
        (house.rest, "Reward .60, final. What it left.", "What it left."), (house.lead, None, ""),
    ],
)  # fmt: skip
def test_numbers_are_written_one_way(write, value, written):
    assert write(value) == written


def test_a_moment_of_another_year_names_the_year():
    assert house.stamp(dt.datetime(2001, 3, 31, 9, 47, tzinfo=dt.UTC)) == "31 Mar 2001, 09:47"
