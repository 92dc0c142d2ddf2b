"""The JSON output of commands as typed records: one module for each result."""
