"""Categories: who gave a session its category, and which source takes precedence.

In: the words of people, runners, decisions, rules and agents. Out: the session's category, which the bandits learn by.
Start with `provenance` (precedence), then `reach` (what rules would match), `changes` (what people do to one session or
many, and undoing it) and `edits` (what they do to the list of rules). `preview` shows what a change would do to the
bandits; `rules` stores the traits that rules match.
"""
