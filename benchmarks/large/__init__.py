"""A site as large as wanted: real sessions, taken in and judged, and then copied by SQL. For `benchmarks/pages.py`."""
