"""Finds what runtimes get wrong, by itself, and shrinks it."""
