"""Renderers of results: one module for each result and output format."""
