"""Pictures drawn on the server: pure functions from numbers to SVG, which prints and needs no script.

Sizes are attributes and colours are classes, as a strict content security policy requires. `svg` has axes and marks.
"""
