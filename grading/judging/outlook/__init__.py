"""Figures for people: how each judge stands, what came of the attempts, what they cost, when the backlog is done."""
