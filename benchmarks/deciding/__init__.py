"""Decisions of every kind through the site's own selection, and whether the draws are as their logged chances say."""
