"""What runs beside an agent: the hook file that hands its sessions in, and sample sessions to begin with.

In: a session that has just ended on the agent's machine. Out: a POST to the API, or a file kept until the site is back.
Start with `submit_session`: the site serves it with its own address filled in, so it may import nothing else.
"""
