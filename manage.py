#!/usr/bin/env python
"""Django's command line for gradingsite."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gradingsite.settings")
    from django.core.management import execute_from_command_line

    from gradingsite import schema

    schema.require_for(sys.argv[1:])
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
