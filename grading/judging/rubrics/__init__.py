"""Rubrics and what follows from them.

kinds (of work) · versions (saving, putting in force) · examples · trials · verdicts (stale, or still an answer)
plans, rejudge and progress (judging a selection again)
"""
