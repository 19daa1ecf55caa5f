"""Categories: who said of what kind a session is, and whose word holds.

In: words of people, runners, decisions, rules and agents. Out: the session's category, and with it the bandits'.
Start with `given` (whose word holds), then `reach` (what rules would catch), `changes` (what people do to one session
or many, and undoing it) and `edits` (what they do to the list of rules).
preview: what that does to the bandits · reading: what rules go by, from the log.
"""
