"""Secrets out, everything else in, byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.judging.core.sanitise import clean, inline, quoted
from grading.redaction.redact import redact, redact_slice
from grading.redaction.secret_shapes import ASSIGNED, MIN_TOKEN_LENGTH, NAME_LITERALS, OTHERS, TOKENS
from tests.corpus import secrets
from tests.corpus.secrets import ALL, HARMLESS
from tests.examples import examples

pytestmark = pytest.mark.pure

SECRET = "ghp_" + "a1B2" * 9


def windows(part: str, size: int = 8) -> set[str]:
    return {part[at : at + size] for at in range(max(len(part) - size, 0) + 1)}


def leaked(secret: secrets.Secret, text: str) -> list[str]:
    """Pieces of eight characters in a row of a secret that are in the text."""
    return [piece for part in secret.parts for piece in windows(part) if piece in text]


def test_the_corpus_is_large_enough():
    assert len(ALL) >= 40
    assert all(part in secret.text for secret in ALL.values() for part in secret.parts)


def test_a_secret_is_redacted(subtests):
    """And nothing more is redacted when it goes through once more."""
    for name, secret in ALL.items():
        with subtests.test(name):
            out = redact(secret.text)
            assert leaked(secret, out) == []
            assert "[redacted " in out
            assert redact(out) == out


def test_a_secret_is_redacted_in_the_middle_of_a_text(subtests):
    for name, secret in ALL.items():
        with subtests.test(name):
            out = redact(f"before it.\n{secret.text}\nafter it.")
            assert leaked(secret, out) == []
            assert out.startswith("before it.\n")
            assert out.endswith("\nafter it.")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_the_judge_needs_survives_untouched(name):
    assert redact(HARMLESS[name]) == HARMLESS[name]


def test_a_key_that_was_cut_short_is_redacted():
    lengths = range(16, len(SECRET))
    assert [length for length in lengths if SECRET[4:12] in redact(f"token {SECRET[:length]}")] == []


def test_a_key_across_a_cut_leaves_nothing_of_it(subtests):
    text = "x " * 150 + SECRET + " y" * 400 + SECRET + " z"
    for limit in range(100, 900, 37):
        with subtests.test(limit=limit):
            for out in (inline(text, limit), quoted(text, limit)):
                assert not windows(SECRET[4:]) & windows(out)
                assert len(out) <= limit


def test_a_key_that_a_terminal_broke_is_followed_for_twenty_lines():
    """And no further: what goes on for longer is no key but a file that follows one."""
    rows = [f"{'abcd1234' * 8}{number:06}" for number in range(22)]
    rows[0] = (SECRET + rows[0])[: len(rows[0])]
    text = redact("\n".join([*rows, "the end"]))
    assert [row for row in rows if row in text] == rows[21:]


def test_the_rest_of_a_line_stays():
    assert redact(f"push with {SECRET} to origin") == "push with [redacted GitHub Token] to origin"


def test_the_lines_of_a_putty_key_are_redacted():
    rows = [("b2F" + "xYz9" * 15 + f"{number:02}")[:64] for number in range(4)]
    text = redact(
        "\n".join(["PuTTY-User-Key-File-3: ssh-ed25519", "Private-Lines: 4", *rows, "Private-MAC: 00", "$ ls -la"])
    )
    assert [row for row in rows if row in text] == []
    assert text.endswith("$ ls -la")


def test_a_quote_in_a_value_does_not_end_it():
    assert "Zq4w" not in redact(r"""password = "xR7\"Zq4w9Lm2" # of the site""")


def test_a_key_with_noise_inside_is_one_key():
    assert redact(f"x {SECRET[:20]}\u200b{SECRET[20:]} y") == "x [redacted GitHub Token] y"


def test_a_slice_has_marks_for_secrets_that_are_partly_in_it():
    text = f"before {SECRET} and {SECRET} after"
    second = text.rindex(SECRET)
    assert redact_slice(text, 10, second + 20) == "[redacted GitHub Token] and [redacted GitHub Token]"
    assert redact_slice(text, 0, len(text)) == redact(text)
    assert redact_slice(text, 2, 5) == "for"


def test_the_judge_sees_no_part_of_a_secret_where_a_text_was_cut():
    """Also if marks make the text so much shorter that all that was read of it could be shown."""
    keys = "sk-ant-api03-" + "aB3xZ9" * 16, "AKIA" + "Q7ZX" * 4
    text = "".join(f"{number:05} {' '.join(keys)}\n" for number in range(2_000))
    assert keys[1][:4] not in clean(text, 20_000)


@given(st.text())
def test_any_text_comes_back_or_is_marked(text):
    out = redact(text)
    assert out == text or "[redacted " in out


@given(st.text(alphabet="abc 12\n=:\"'/\\-_", max_size=200), st.text(alphabet="xyz 34\n;,", max_size=200))
def test_a_key_is_found_in_any_surroundings(before, after):
    assert not windows(SECRET[4:]) & windows(redact(f"{before} {SECRET} {after}"))


WRITTEN = [shape for shape in (*TOKENS, *OTHERS) if not shape.any_case]


@pytest.mark.parametrize("shape", WRITTEN, ids=lambda shape: f"{shape.kind} {shape.pattern.pattern[:24]}")
@examples(20)
@given(data=st.data())
def test_a_text_without_a_shape_s_words_has_none_of_it(shape, data):
    text = data.draw(st.from_regex(shape.pattern))
    lowered = text.replace("İ", "i").lower()
    words = " ".join(word for word in text.split() if len(word) >= MIN_TOKEN_LENGTH)
    assert any(prefix in words for prefix in shape.prefixes) or any(need in lowered for need in shape.needs)


@examples(100)
@given(text=st.from_regex(ASSIGNED))
def test_a_text_without_a_name_s_words_has_no_name(text):
    assert any(need in text for need in NAME_LITERALS)


@pytest.mark.parametrize("text", ["password: ", "PASSWORD=", "api_key: ", "export TOKEN=", "x\nsecret: "])
def test_text_may_end_after_the_name_of_a_secret(text):
    assert redact(text) == text
