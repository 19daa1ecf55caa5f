"""Rubrics and what follows from them.

kinds (of work) · versions (saving, putting in force) · examples · trials · verdicts (stale, or still an answer)
plans, again and progress (judging a selection again)
"""
