"""The base layer: models, values, shapes, element types, diagnostics, files and processes.

It contains nothing about particular operators or file formats.
"""
