"""Backups of the site, restoring them, checks of a site or a backup, upgrades, and the move to PostgreSQL.

In: the running site, or a backup of it. Out: a complete backup, a site restored from one, or a list of problems.
Start with `making`, then `restoring`; `verifying` checks a site or a backup, and `moving` copies one to PostgreSQL.
"""
