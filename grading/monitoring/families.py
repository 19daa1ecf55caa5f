"""Which family a model is of: a judge may favour its own."""

import re

# As providers and gateways spell them, somewhere in the model's name.
NAMES = ("claude", "gemini", "gemma", "llama", "mistral", "mixtral", "qwen", "deepseek", "grok", "kimi", "glm", "gpt")
_OPENAI = re.compile(r"(?:^|[/.])(?:o\d|chatgpt|codex)")
_WORD = re.compile(r"[a-z]+")


def family(model: str) -> str:
    """The family that a model's name shows: "us.anthropic.claude-sonnet-5-5" is claude, "openai/o4-mini" gpt.

    A name of none of the known ones is of the family of its first word; empty for an empty name.
    """
    name = model.lower()
    if _OPENAI.search(name):
        return "gpt"
    known = next((each for each in NAMES if each in name), None)
    word = _WORD.search(name.rpartition("/")[2])
    return known or ("" if word is None else word[0])
