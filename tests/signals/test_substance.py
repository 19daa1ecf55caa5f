"""What is text and what is markup, and when two texts are equal."""

import time
import unicodedata

import pytest

from grading.signals.substance import read_lines, read_row

pytestmark = pytest.mark.pure

NOTE = [
    "Thompson sampling draws one sample from the posterior of every arm and plays the arm whose sample is largest.",
    "An arm that is rarely played keeps a wide posterior, and so its turn comes now and then by itself.",
    "Decay is applied when the posterior is read_lines, so that an idle arm is not eroded by what the others do.",
]


@pytest.mark.parametrize(
    "lines",
    [
        ["---", "title: one two three", "tags: [four, five]", "---"],
        ["# ", "## ##", "***", "- [ ] ", "> ", "| --- | :-: |", "```python", "```"],
        ["<div class='one two'><br/><!-- three four --></div>", "&nbsp;&mdash;"],
        ["https://example.test/one/two/three?four=five", "www.example.test/one"],
        ["![](https://example.test/picture.png)"],
        ["....", "!!!", "☃ ☃ ☃", "_ _ _", "1. 2. 3."],
        ["", "   ", "\t\t"],
    ],
)
def test_markup_alone_is_no_text(lines):
    assert read_lines(lines).characters == 0
    assert read_lines([*lines, "", "word"]).characters == len("word")


def test_the_words_inside_of_markup_are_text():
    assert read_lines(["# *One* `two`", "- [three](https://a.test/x)", "| four |", "<b>five</b>"]).characters == 23
    assert read_lines(["```", "code stays", "```"]).characters == len("code stays")


def test_front_matter_is_taken_off_the_beginning_only():
    assert read_lines(["---", "title: a", "---", "one two"]).characters == len("one two")
    assert read_lines(["one", "---", "two"]).characters == len("one two")


def test_what_is_said_again_adds_no_text():
    assert read_lines(["lorem ipsum dolor sit amet"] * 50).characters < 60
    assert read_lines(["x " * 1000]).characters < 20


def test_a_blob_is_one_long_word():
    assert read_lines(["a" * 400]).characters == 30


def test_chinese_and_japanese_are_counted_by_character():
    assert read_lines(["離散的な報酬"]).characters == 11


@pytest.mark.parametrize(
    "other",
    [
        [f"* **{line.upper()}** (4711)" for line in NOTE],
        ["---", "title: a note", "---", "<br>", " ".join(NOTE).replace(" ", "\t\t"), "https://example.test/a"],
        [line.replace("idle", "i-dle").replace(",", " …") for line in NOTE],
    ],
)
def test_texts_that_differ_in_form_only_are_equal(other):
    assert read_lines(other).text_hash == read_lines(NOTE).text_hash


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_forms_of_a_character_are_equal(form):
    text = "Ein ﬁxer Überblick für Ｌeser, im Café"
    assert read_lines([unicodedata.normalize(form, text)]).text_hash == read_lines([text]).text_hash


@pytest.mark.parametrize("other", [NOTE[:-1], [*NOTE, "And more."], [NOTE[0].replace("arm", "lever"), *NOTE[1:]], []])
def test_an_excerpt_an_addition_and_a_changed_word_make_another_text(other):
    assert read_lines(other).text_hash != read_lines(NOTE).text_hash


def test_markup_alone_has_no_text_to_compare():
    assert read_lines(["# ", "| --- |", "1."]).text_hash is None


@pytest.mark.parametrize(
    ("row", "same"),
    [
        ("| 2 | Idea: offline maps | 9 |", True),
        ("|17.|  IDEA - *offline* maps!|", True),
        ("| b) | Idea: offline maps | 8 |", True),
        ("| 1 | Ｉdea: offline maps | 8 |", True),
        ("| 1 | Idea: online maps | 8 |", False),
    ],
)
def test_a_row_is_the_same_with_other_numbering_case_and_punctuation(row, same):
    assert (read_row(row) == read_row("| 1 | Idea: offline maps | 8 |")) is same


@pytest.mark.parametrize("mark", ["<", "](", "[", "&", "http://", "<!--", "a'", "---\n", "`" * 3])
def test_hostile_text_is_read_in_linear_time(mark):
    before = time.perf_counter()
    read_lines([mark * (400 // len(mark))] * 400)
    assert time.perf_counter() - before < 2
