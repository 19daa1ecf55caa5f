"""Signing in, and the audit events of it.

In: sign-ins, second factors, an OpenID Connect provider's answers, and Django's signals about users and roles.
Out: who is signed in, or how long they must wait; sessions that expire; rows of `AuditEvent`.
Start with `delays.GrowingDelay`, then `recording.record`.
"""
