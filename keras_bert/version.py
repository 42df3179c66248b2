"""The version of the package, the one place for it: pyproject.toml and the manual read it here."""

__version__ = "0.2.0"
