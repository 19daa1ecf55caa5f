"""Evidence of sessions: immutable bytes, what was read from them, and which session owns each log record and commit.

In: streams; claims of commits, logs and their records. Out: blobs by their SHA-256, the readings of files, one owner
for each thing that several sessions may claim, and transcripts of any length page by page.
Start with `receiving` (an incoming file), then `store` (bytes), `logs` (which count) and `ownership` (its docstring
shows the order of its steps).
"""
