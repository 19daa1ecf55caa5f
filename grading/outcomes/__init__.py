"""What became of a session's work: did it land on the default branch, was it reverted, did CI pass?

In: outcomes from the API, imports and forges, and the commits that sessions own. Out: `OutcomeRecord` rows, which are
shown and compared with grades. They change no reward. Start with `recording.record`, then `following.run_due`.
"""
