#!/usr/bin/env python
"""Django's command line for gradingsite."""

from gradingsite.command import main

if __name__ == "__main__":
    main()
