import atexit
import gc

# Imports create some hundred thousand lasting objects. With the default threshold the garbage collector took a sixth of
# the start, and its last run a quarter of a short command.
gc.set_threshold(50_000, 10, 10)
atexit.register(gc.freeze)
