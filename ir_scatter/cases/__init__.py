"""Cases of one operator: drawn, broken on purpose, run in models, and judged."""
