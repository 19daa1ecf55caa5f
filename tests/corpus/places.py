"""The places where a transcript has text, each as a function that puts a text there and says what stands before it."""

import json


def in_places(text: str) -> list[tuple]:
    """Steps of a log with the text in outputs, commands, arguments, messages and patches, plain and escaped."""
    return [
        ("user", f"Fix the retry guard.\n{text}"),
        ("Bash", {"command": "env"}, f"HOME=/root\n{text}\nLANG=C"),
        ("Bash", {"command": f"printf x && {text}"}, "ok"),
        ("Write", {"file_path": "/repo/.env", "content": f"# settings\n{text}\n"}, "written"),
        ("Edit", {"file_path": "/repo/a.py", "old_string": "x", "new_string": text}, "done"),
        ("Bash", {"command": "git diff"}, "\n".join(f"+{line}" for line in text.split("\n"))),
        ("Bash", {"command": "curl -s localhost"}, json.dumps({"stdout": text, "code": 0})),
        ("Bash", {"command": "cat -n .env"}, "\n".join(f"  {n}\t{line}" for n, line in enumerate(text.split("\n"), 1))),
        ("TodoWrite", {"todos": [{"content": f"use {text}", "status": "pending"}]}, "ok"),
        ("Bash", {"command": "exit 1"}, f"Error: could not connect with {text}"),
        ("said", f"I used this:\n```\n{text}\n```"),
    ]
