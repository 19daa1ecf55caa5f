"""An outage drill: real processes, a stream of sessions and faults. Then the database says what became of it all.

`site` runs the processes. `phases` lists what goes wrong, `faults`, `waiting` and `programs` have a script for each
fault, and `run` plays them in a `scene`. `checks` asks the database, `findings` compares with what was promised.
"""
