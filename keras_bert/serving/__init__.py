"""SavedModels that take text and give answers."""
