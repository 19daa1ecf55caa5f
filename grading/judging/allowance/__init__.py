"""Whether a call may be made, when, and at what price.

quota (what the provider lets us do) · limiter and bucket (when there is room) · budget and prices (can we afford it?)
"""
