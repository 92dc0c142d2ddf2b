"""Runs a model on several runners, and reports which of them deviates from the operator specifications."""
