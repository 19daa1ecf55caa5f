"""The site in a folder, and back: what a lost disk, a bad upgrade or a larger database ask for.

In: the running site, or a backup of it. Out: a backup that is whole or does not count, a site restored from one, and
words about whether all of it is what it was.
Start with `making`, then `restoring`; `verifying` looks at a site or a backup, and `moving` takes one to PostgreSQL.
"""
