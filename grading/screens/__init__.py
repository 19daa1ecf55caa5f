"""The pages that people see: our own admin site at /, one folder for each screen."""
