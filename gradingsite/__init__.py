import atexit
import gc

# Loading makes some hundred thousand objects that stay. To look through them after every 700 took a sixth of the start;
# to look through them once more at the end, when all of it goes anyway, a quarter of a short command.
gc.set_threshold(50_000, 10, 10)
atexit.register(gc.freeze)
