"""The subject of these tests is files: models answer without a graph where no export is made."""

import pytest


@pytest.fixture(autouse=True)
def without_graphs(request) -> None:
    if not request.node.get_closest_marker("optimized"):
        request.getfixturevalue("eager")
