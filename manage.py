#!/usr/bin/env python
"""Django's command line for gradingsite."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gradingsite.settings")
    from django.core.management import execute_from_command_line

    from gradingsite import schema

    schema.require_for(sys.argv[1:])
    try:
        execute_from_command_line(sys.argv)
    except Exception as error:
        from grading.busy import trouble

        found = trouble(error)
        if found is None or "--traceback" in sys.argv:
            raise
        sys.exit(f"{found.title}: {str(error).strip()}\n{found.words}")


if __name__ == "__main__":
    main()
