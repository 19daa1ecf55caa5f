"""The pages that people see: our own admin site at /, one folder for each screen.

In: requests of people. Out: pages, parts of pages, and acts that go through the services of the doors below.
Start with `site`: all addresses, their views and permissions; `context` is the context that every page has.
"""
