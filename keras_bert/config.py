"""The published BERT sizes, one dict.

Sources: Devlin et al. 2019, section 3 (Base, Large); Turc et al. 2019, "Well-Read Students Learn
Better", table 1 (the 24 small sizes: 2-12 layers by 128-768 hidden units, heads of 64 units, and a
feed-forward layer four times as wide as the hidden one).
"""

import re
from typing import TypedDict


class BertSize(TypedDict):
    """The four numbers that determine the shape of a BERT, apart from its vocabulary."""

    num_layers: int
    num_heads: int
    hidden_dim: int
    intermediate_dim: int


def _size(num_layers: int, hidden_dim: int) -> BertSize:
    return BertSize(
        num_layers=num_layers,
        num_heads=hidden_dim // 64,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
    )


SIZES: dict[str, BertSize] = {
    f"L{layers}_H{hidden}": _size(layers, hidden)
    for layers in (2, 4, 6, 8, 10, 12)
    for hidden in (128, 256, 512, 768)
}
SIZES |= {
    "tiny": SIZES["L2_H128"],
    "mini": SIZES["L4_H256"],
    "small": SIZES["L4_H512"],
    "medium": SIZES["L8_H512"],
    "base": SIZES["L12_H768"],
    "large": _size(24, 1024),
}


def find_size(name: str) -> BertSize:
    """Finds a size by its name.

    Args:
        name: a key of `SIZES`, or layers and hidden size such as "L9_H384".

    Raises:
        ValueError: if the name is neither, or the hidden size is not a multiple of 64.
    """
    if name in SIZES:
        return SIZES[name]
    shape = re.fullmatch(r"L(\d+)_H(\d+)", name)
    layers, width = map(int, shape.groups()) if shape else (0, 0)
    if not layers or not width or width % 64:
        raise ValueError(
            f"size={name!r}: expected one of {', '.join(SIZES)}, or layers and width "
            "such as L9_H384, with a width that is a multiple of 64"
        )
    return _size(layers, width)
