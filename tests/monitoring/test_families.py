"""Which family a model's name shows, as providers and gateways spell it."""

import pytest

from grading.monitoring.judges import family

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-5-5", "claude"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude"),
        ("openrouter/anthropic/claude-opus-4-6", "claude"),
        ("gpt-5.2-codex", "gpt"),
        ("openai/o4-mini", "gpt"),
        ("chatgpt-4o-latest", "gpt"),
        ("gemini-3-pro", "gemini"),
        ("deepseek/deepseek-v4", "deepseek"),
        ("acme/Oracle-2", "oracle"),
        ("nova-pro", "nova"),
        ("", ""),
    ],
)
def test_a_model_s_family_is_read_off_its_name(model, expected):
    assert family(model) == expected
