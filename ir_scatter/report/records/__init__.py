"""What the commands write as JSON, as typed records: one module for each result."""
