"""An outage drill: real processes, a stream of sessions, faults, and then the database is asked what came of it all.

site (the processes) · stream (what agents send) · faults (what goes wrong) · phases (which, when, how many) · checks
"""
