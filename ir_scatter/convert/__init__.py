"""Rewrites scatter operators of a model, changes nothing else, and proves it before it writes."""
