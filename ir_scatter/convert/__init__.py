"""Rewrites scatter operators of a model, and verifies the result before it is written.

Nothing else changes.
"""
