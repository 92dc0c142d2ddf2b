"""Makes legal inputs for a model."""
