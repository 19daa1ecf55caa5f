"""An outage drill: real processes, a stream of sessions, faults, and then the database is asked what came of it all.

site (the processes) · stream (what agents send) · scene, faults (what goes wrong) · phases (which, how many) · run
checks (pure questions to the database) · findings (the promises) · report (the table)
"""
