"""Expansions of a function in few vectors, learned or reduced."""
