"""What is text and what is markup, and when a text is a near copy of another."""

import random
import time

import pytest

from grading.signals.substance import SKETCH_SIZE, is_copy, read_lines, read_row

pytestmark = pytest.mark.pure

NOTE = [
    "Thompson sampling draws one sample from the posterior of every arm and plays the arm whose sample is largest.",
    "An arm that is rarely played keeps a wide posterior, and so its turn comes now and then by itself.",
    "Decay is applied when the posterior is read_lines, so that an idle arm is not eroded by what the others do.",
]


def words(count: int, seed: int = 1) -> list[str]:
    dice = random.Random(seed)
    return [
        " ".join("".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(10))
        for _ in range(count // 10)
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
    assert len(read_lines(["離散的な報酬を読む"]).sketch) > 1


def test_a_text_is_a_copy_of_itself_whatever_its_case_numbers_and_markup():
    other = [f"* **{line.upper()}** (see 4711)" for line in NOTE]
    assert is_copy(read_lines(other).sketch, read_lines(NOTE).sketch)


def test_an_excerpt_is_a_copy_and_an_addition_is_not():
    longer = [*NOTE, *words(100)]
    assert is_copy(read_lines(NOTE).sketch, read_lines(longer).sketch)
    assert not is_copy(read_lines(longer).sketch, read_lines(NOTE).sketch)


def test_different_texts_are_no_copies():
    assert not is_copy(read_lines(words(200, seed=1)).sketch, read_lines(words(200, seed=2)).sketch)
    assert not is_copy((), read_lines(NOTE).sketch)
    assert not is_copy(read_lines(NOTE).sketch, ())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("kept", "expected"), [(0.95, True), (0.6, False)])
def test_long_texts_are_compared_by_a_sketch(seed, kept, expected):
    text = words(1200, seed=seed)
    cut = int(len(text) * kept)
    changed = [*text[:cut], *words(1200, seed=seed + 100)[cut:]]
    assert len(read_lines(text).sketch) == SKETCH_SIZE
    assert is_copy(read_lines(changed).sketch, read_lines(text).sketch) is expected


@pytest.mark.parametrize(
    ("row", "same"),
    [
        ("| 2 | Idea: offline maps | 9 |", True),
        ("|17.|  IDEA - *offline* maps!|", True),
        ("| b) | Idea: offline maps | 8 |", True),
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
