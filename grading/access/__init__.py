"""Who may come in, and what is kept of it.

In: log-ins, second factors, what a provider vouches for, and what Django tells of people and their roles.
Out: whoever is let in, or how long they wait; sessions that end; events in History. Start with `delays.GrowingDelay`,
then `recording.record`.
"""
