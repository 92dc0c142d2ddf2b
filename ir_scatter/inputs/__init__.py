"""Generates legal inputs for a model."""
