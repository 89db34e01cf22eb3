"""Texts as a model wants them: tokenised once, kept on the device, padded batch by batch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from airchoir._types import Indices

if TYPE_CHECKING:
    import torch

_MULTIPLE = 64
"""Batches are padded to a multiple of this many tokens: few shapes, whole tiles."""
_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class Tokens:
    """Every text's tokens, one after the other."""

    flat: "torch.Tensor"
    starts: "torch.Tensor"
    lengths: NDArray[np.int64]
    """On the host: a batch's width must not wait for the device."""
    longest: int
    pad: int

    def batch(self, examples: Indices) -> dict[str, "torch.Tensor"]:
        """What the model is called with: tokens (examples, width) and which of them are no padding."""
        import torch

        device = self.flat.device
        chosen = torch.from_numpy(np.ascontiguousarray(examples)).to(device)
        lengths = self.lengths[examples]
        width = min(-(-int(lengths.max()) // _MULTIPLE) * _MULTIPLE, self.longest)
        place = torch.arange(width, device=device)
        mask = place < torch.from_numpy(lengths).to(device)[:, None]
        found = self.flat[(self.starts[chosen][:, None] + place).clamp(max=len(self.flat) - 1)].long()
        return {"input_ids": found.where(mask, self.pad), "attention_mask": mask.long()}

    def by_length(self, examples: Indices, tokens: int) -> list[Indices]:
        """Places in `examples`, longest text first, in batches of at most `tokens` padded tokens."""
        order = np.argsort(-self.lengths[examples], kind="stable")
        made, start = [], 0
        while start < len(order):
            width = -(-int(self.lengths[examples[order[start]]]) // _MULTIPLE) * _MULTIPLE
            made.append(order[start : start + max(1, tokens // width)])
            start += len(made[-1])
        return made


def tokenise(texts: NDArray[Any], tokeniser: Any, *, longest: int, pad: int, device: "torch.device") -> Tokens:
    """The tokens of `texts`, each truncated to `longest`."""
    import torch

    rows: list[NDArray[np.int32]] = []
    for start in range(0, len(texts), _AT_ONCE):
        encoded = tokeniser(
            list(texts[start : start + _AT_ONCE]),
            truncation=True,
            max_length=longest,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        rows += [np.asarray(row or [pad], dtype=np.int32) for row in encoded]  # a model cannot read nothing at all
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return Tokens(
        flat=torch.from_numpy(np.concatenate(rows)).to(device),
        starts=torch.from_numpy(np.cumsum(lengths) - lengths).to(device),
        lengths=lengths,
        longest=longest,
        pad=pad,
    )
