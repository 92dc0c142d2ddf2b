"""Cases (inputs and attributes for one operator): drawn, made illegal on purpose, run, and judged."""
