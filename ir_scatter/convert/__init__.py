"""Rewrites scatter operators of a model, and verifies the result before it is written.

Other parts of the model do not change.
"""
