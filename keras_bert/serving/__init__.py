"""SavedModels that take text and return answers."""
