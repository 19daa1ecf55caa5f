"""Django's SQLite backend with a write gate, a fair lock: writers take turns in the order in which they came.

Start with `gate.WriteGate`. `base.DatabaseWrapper` acquires it before BEGIN and releases it after COMMIT or ROLLBACK.
"""
