"""Runs a model on several runners, and reports which of them departs from the operator specifications."""
