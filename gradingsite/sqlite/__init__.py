"""Django's SQLite backend with a gate before every write: whoever comes first writes first, and nobody waits for ever.

Start with `gate.WriteGate`; `base.DatabaseWrapper` takes it before BEGIN and gives it back at the transaction's end.
"""
