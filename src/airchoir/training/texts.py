"""A client's text classifier: AdamW, the learning rate falling linearly step by step, gradients clipped."""

import json
import time
from typing import Any

import numpy as np

from airchoir import provenance
from airchoir._types import Indices
from airchoir.tasks import Data
from airchoir.tasks.recipes import TextRecipe
from airchoir.training.compute import compute_on, reproducible, require_torch
from airchoir.training.fitter import ClassScores, Epoch, Fitter, Report
from airchoir.training.language import text_model
from airchoir.training.losses import LOSSES
from airchoir.training.steps import batches
from airchoir.training.tokens import Tokens, tokenise

_TOKENS_SCORED_AT_ONCE = {"cuda": 1 << 17, "cpu": 1 << 12}


class TextFitter(Fitter):
    """Fits text classifiers on the CPU or on one GPU."""

    def __init__(self, recipe: TextRecipe, data: Data, validation: Indices, *, device: str) -> None:
        torch = require_torch()

        self._recipe, self._data, self._compute = recipe, data, compute_on(device)
        self._source = source = text_model(recipe.model, recipe.weights, classes=data.classes)
        longest = min(recipe.max_tokens, getattr(source.config, "max_position_embeddings", None) or recipe.max_tokens)
        self._train, self._test = (
            tokenise(texts, source.tokeniser, longest=longest, pad=source.pad, device=self._compute.device)
            for texts in (data.train_inputs, data.test_inputs)
        )
        self._labels = torch.from_numpy(data.train_labels).to(self._compute.device)
        self._validation = validation

    def fit(self, shard: Indices, *, seed: int, report: Report) -> tuple[ClassScores, ClassScores]:
        order, initial, noise = np.random.SeedSequence(seed).spawn(3)
        with reproducible(self._compute, initial):
            model = self._source.draw().to(self._compute.device)
        with reproducible(self._compute, noise):
            self._run(model, shard, np.random.default_rng(order), report)
            test = self._scores(model, self._test, np.arange(len(self._data.test_labels)))
            return test, self._scores(model, self._train, self._validation)

    def provenance(self) -> dict[str, str]:
        return {
            "model": self._source.name,
            "weights": self._source.source,
            "weights_sha256": self._source.fingerprint,
            "data_sha256": self._data.fingerprint,
            "device": self._compute.describe(),
            "versions": json.dumps(provenance.versions("numpy", "torch", "transformers", "tokenizers")),
        }

    def _run(self, model: Any, shard: Indices, rng: np.random.Generator, report: Report) -> None:
        import torch

        recipe = self._recipe
        optimiser = torch.optim.AdamW(
            model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )
        steps = recipe.epochs * -(-len(shard) // recipe.batch)
        step = 0
        model.train()
        for epoch in range(recipe.epochs):
            start = time.perf_counter()
            loss_sum = torch.zeros((), device=self._compute.device)
            for batch in batches(shard[rng.permutation(len(shard))], recipe.batch):
                optimiser.param_groups[0]["lr"] = linear(recipe.learning_rate, step, steps)
                loss_sum += self._step(model, optimiser, batch) * len(batch)
                step += 1
            loss = float(loss_sum) / len(shard)  # waits for the device
            report(Epoch(epoch + 1, recipe.epochs, loss, len(shard) / (time.perf_counter() - start)))

    def _step(self, model: Any, optimiser: Any, batch: Indices) -> Any:
        import torch

        labels = torch.from_numpy(batch).to(self._compute.device)
        with self._compute.autocast():
            logits = model(**self._train.batch(batch)).logits
        loss = LOSSES[self._recipe.loss](logits, self._labels[labels])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), self._recipe.clip)
        optimiser.step()
        return loss.detach()

    def _scores(self, model: Any, tokens: Tokens, examples: Indices) -> ClassScores:
        import torch

        model.eval()
        places = tokens.by_length(examples, _TOKENS_SCORED_AT_ONCE[self._compute.device.type])
        with torch.inference_mode(), self._compute.autocast():
            parts = [model(**tokens.batch(examples[place])).logits.float().softmax(dim=1) for place in places]
        scores = np.empty((len(examples), self._data.classes), dtype=np.float32)
        scores[np.concatenate(places)] = torch.cat(parts).cpu().numpy()
        return scores


def linear(rate: float, step: int, steps: int) -> float:
    """The learning rate of `step`, counted from 0, on its way from `rate` to 0.

    >>> [round(linear(1.0, step, 4), 2) for step in range(4)]
    [1.0, 0.75, 0.5, 0.25]
    """
    return rate * (1.0 - step / steps)
