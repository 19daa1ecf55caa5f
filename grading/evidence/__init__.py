"""What sessions left behind, as bytes that never change, and whose each thing is.

In: streams; claims of commits, logs and their records. Out: bytes by their SHA-256, what they turned out to be, one
owner for each thing that several sessions may claim, and transcripts of any length page by page.
Start with `receiving` (a file on its way in), then `store` (bytes), `reading` (what they are) and `ownership` (its
docstring draws the way).
"""
