"""Texts and labels as a report shows them."""

import re

# What steers a terminal, has no glyph, or can't be written as UTF-8: control characters other than
# tab and line feed, and halves of surrogate pairs.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def shown(text: str) -> str:
    """A text in which such characters are written out, as in Python's string literals."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)
