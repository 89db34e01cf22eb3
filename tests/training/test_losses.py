"""The plain loss and the published one, where the softmax is taken twice."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

torch = pytest.importorskip("torch", reason="losses need airchoir[train]; run make test-all")

from airchoir.training.losses import LOSSES, plain, published

LOGITS = np.random.default_rng(0).normal(0.0, 3.0, (6, 4))
LABELS = np.array([0, 1, 2, 3, 0, 1])


def test_plain_is_the_cross_entropy_of_the_logits() -> None:
    reference = -log_softmax(LOGITS, axis=1)[np.arange(6), LABELS].mean()
    assert float(plain(torch.tensor(LOGITS), torch.tensor(LABELS))) == pytest.approx(reference, rel=1e-6)


def test_published_is_the_cross_entropy_of_the_softmax_output() -> None:
    reference = -log_softmax(softmax(LOGITS, axis=1), axis=1)[np.arange(6), LABELS].mean()
    assert float(published(torch.tensor(LOGITS), torch.tensor(LABELS))) == pytest.approx(reference, rel=1e-6)


def test_a_published_loss_never_falls_below_that_of_certainty() -> None:
    certain = torch.tensor([[100.0, 0.0, 0.0]])
    assert float(published(certain, torch.tensor([0]))) == pytest.approx(np.log(1 + 2 / np.e), rel=1e-6)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_losses_of_bfloat16_logits_are_computed_in_float32(name: str) -> None:
    loss = LOSSES[name](torch.tensor(LOGITS).bfloat16(), torch.tensor(LABELS))
    assert loss.dtype == torch.float32
