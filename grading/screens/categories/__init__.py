"""Categories: the rules that give sessions one, what they would catch, and setting it by hand."""
