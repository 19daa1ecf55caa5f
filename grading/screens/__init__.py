"""The site people see: an admin site of ours at /, one module a screen."""
