"""Runs one model on several runners and says who departs from the document."""
