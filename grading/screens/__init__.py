"""The pages that people see, at /: one folder for each screen.

In: requests of people. Out: pages, parts of pages, and actions, which call the services of the packages below.
Start with `urls`. `http` has the decorator with which each view names its permission, `frame` what every page shows
around its content, `admin` the models' admin pages.
"""
