"""Which builds of TensorFlow Serving know the ops that an export needs."""

from collections.abc import Iterable
from dataclasses import dataclass

# What was looked at, oldest first; nothing is said of versions between.
#
# 2.10, 2.11.0: tensorflow/serving#2064, where FastBertNormalize is reported missing from both
#   images and present in the nightly of 2022-12-28, which then loads a FastBertTokenizer.
# images of 2025-02: tensorflow/serving#4057, of that month, says that the images hold TF Text
#   2.12.1 and lack RoundRobinTrim, without a version of the server; #2267, of November 2024 and
#   TensorFlow 2.18, shows the error. What 2.12.1 registers was read from its wheel.
# 2026 source: tensorflow_serving/workspace.bzl at 0185d7f, made after 2026-05 by the libraries it
#   names, takes TF Text 2.20.0; model_servers/BUILD (SUPPORTED_TENSORFLOW_OPS) links that one's
#   `ops_lib`, which holds all of its op libraries. What 2.20.0 registers was read from its wheel.
SERVERS = ("2.10", "2.11.0", "images of 2025-02", "2026 source")

# By op: whether each of SERVERS registers it, None where that was not found out.
_FROM_2_12_1 = (None, None, True, True)
_NOT_IN_2_12_1 = (None, None, False, True)
OPS: dict[str, tuple[bool | None, ...]] = {
    "FastBertNormalize": (False, False, True, True),
    "FastWordpieceTokenizeWithOffsets": _FROM_2_12_1,
    "TFText>FastWordpieceDetokenize": _FROM_2_12_1,
    "WordpieceTokenizeWithOffsets": _FROM_2_12_1,
    "WhitespaceTokenizeWithOffsets": _FROM_2_12_1,
    "TFText>WhitespaceTokenizeWithOffsetsV2": _FROM_2_12_1,
    "UnicodeScriptTokenizeWithOffsets": _FROM_2_12_1,
    "RegexSplitWithOffsets": _FROM_2_12_1,
    "CaseFoldUTF8": _FROM_2_12_1,
    "NormalizeUTF8": _FROM_2_12_1,
    "NormalizeUTF8WithOffsetsMap": _FROM_2_12_1,
    "FindSourceOffsets": _FROM_2_12_1,
    "TFText>RoundRobinTrim": _NOT_IN_2_12_1,
    "TFText>RoundRobinGenerateMasks": _NOT_IN_2_12_1,
    "TFText>Utf8Binarize": _NOT_IN_2_12_1,
}


@dataclass(frozen=True)
class Support:
    """What is known of one op.

    Attributes:
        op: its name.
        registered: the servers known to register it, of `SERVERS`.
        missing: those known not to.
    """

    op: str
    registered: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return bool(self.registered or self.missing)

    def __str__(self) -> str:
        if not self.known:
            return "not in the table: it is not known which servers register it"
        parts = []
        if self.registered:
            parts.append(f"registered by {', '.join(self.registered)}")
        if self.missing:
            parts.append(f"not by {', '.join(self.missing)}")
        return "; ".join(parts)


def support(op: str) -> Support:
    """Looks an op up.

    Args:
        op: its name, as a SavedModel's graph has it.

    Returns:
        what is known of it; of an op that is not in the table, nothing.
    """
    found = OPS.get(op, (None,) * len(SERVERS))
    pairs = list(zip(SERVERS, found, strict=True))
    return Support(
        op,
        registered=tuple(server for server, has in pairs if has),
        missing=tuple(server for server, has in pairs if has is False),
    )


def servers_with_all(ops: Iterable[str]) -> tuple[str, ...]:
    """Names the servers that are known to register every op of a graph.

    Args:
        ops: names of the ops beyond TensorFlow's own.

    Returns:
        a part of `SERVERS`, oldest first: all of them if there are no ops.
    """
    known = [support(op).registered for op in ops]
    return tuple(server for server in SERVERS if all(server in names for names in known))
