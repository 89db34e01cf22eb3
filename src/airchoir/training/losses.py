"""The two losses: a cross-entropy, and the published one, where the softmax is taken twice."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Loss = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Logits (examples, classes) and labels -> the mean loss, in float32."""


def plain(logits: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":
    """Cross-entropy."""
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits.float(), labels)


def published(logits: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":
    """Cross-entropy of the softmax output [METHOD, Setting]."""
    return plain(logits.float().softmax(dim=1), labels)


LOSSES: dict[str, Loss] = {"plain": plain, "published": published}
