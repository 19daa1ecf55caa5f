"""What runs beside an agent: the hook file, which the site serves with its own address filled in."""
