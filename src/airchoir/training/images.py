"""A client's image classifier: SGD with momentum, the learning rate falling along a cosine, one model reused for all clients.

The model, the optimiser and everything recorded or compiled for them are built once. Each client starts with its own initial
weights, copied in place, so that addresses stay and nothing is compiled or recorded again.
"""

import json
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from airchoir import provenance
from airchoir._types import Indices
from airchoir.tasks import Data
from airchoir.tasks.recipes import ImageRecipe
from airchoir.training.compute import Compute, compute_on, reproducible, require_torch, with_fast_layers
from airchoir.training.fitter import ClassScores, Epoch, Fitter, Report
from airchoir.training.losses import LOSSES
from airchoir.training.models import image_model
from airchoir.training.pictures import Gather, Preparation, pictures
from airchoir.training.steps import Step, batches, captured

if TYPE_CHECKING:
    import torch

_SCORED_AT_ONCE = {"cuda": 1000, "cpu": 100}


class ImageFitter(Fitter):
    """Fits image classifiers on the CPU or on one GPU."""

    def __init__(self, recipe: ImageRecipe, data: Data, validation: Indices, *, device: str) -> None:
        torch = require_torch()

        self._recipe, self._data, self._compute = recipe, data, compute_on(device)
        size = recipe.image_size
        self._source = image_model(recipe.model, recipe.weights, classes=data.classes, image_size=size)
        preparation = Preparation(size, *self._source.library.normalisation(self._source.name))
        self._train = pictures(data.train_inputs, preparation, self._compute)
        self._test = pictures(data.test_inputs, preparation, self._compute)
        self._labels = torch.from_numpy(data.train_labels).to(self._compute.device)
        self._validation = validation
        with reproducible(self._compute, np.random.SeedSequence(0)):
            model = with_fast_layers(self._source.draw(), self._compute)
        self._model = model.to(self._compute.device, memory_format=torch.channels_last)
        self._trainer = Trainer(self._model, recipe, self._compute, self._train, self._labels)

    def fit(self, shard: Indices, *, seed: int, report: Report) -> tuple[ClassScores, ClassScores]:
        order, initial, noise = np.random.SeedSequence(seed).spawn(3)
        with reproducible(self._compute, np.random.SeedSequence(0)):
            self._trainer.get_ready_for(len(shard))
        with reproducible(self._compute, initial):
            self._trainer.restart(self._source.draw())
        with reproducible(self._compute, noise):
            self._trainer.run(shard, np.random.default_rng(order), report)
            test = self._scores(self._test, np.arange(len(self._data.test_labels)))
            return test, self._scores(self._train, self._validation)

    def provenance(self) -> dict[str, str]:
        packages = ("numpy", "torch", "torchvision", "timm", "pillow")
        return {
            "model": self._recipe.model,
            "weights": self._source.source,
            "weights_sha256": self._source.fingerprint,
            "data_sha256": self._data.fingerprint,
            "device": self._compute.describe(),
            "versions": json.dumps(provenance.versions(*packages)),
        }

    def _scores(self, gather: Gather, examples: Indices) -> ClassScores:
        import torch

        indices = torch.from_numpy(np.asarray(examples, dtype=np.int64)).to(self._compute.device)
        self._model.eval()
        with torch.inference_mode(), self._compute.autocast():
            parts = [
                self._model(gather(part)).float().softmax(dim=1)
                for part in indices.split(_SCORED_AT_ONCE[self._compute.device.type])
            ]
            scores: ClassScores = torch.cat(parts).cpu().numpy()
        return scores


class Trainer:
    """A model, its optimiser and its ways to take a step, one for each size of batch."""

    def __init__(
        self, model: Any, recipe: ImageRecipe, compute: Compute, gather: Gather, labels: "torch.Tensor"
    ) -> None:
        import torch

        self._model, self._recipe, self._compute = model, recipe, compute
        self._gather, self._labels = gather, labels
        self._criterion = LOSSES[recipe.loss]
        self._rate = torch.tensor(
            recipe.learning_rate, device=compute.device
        )  # a tensor: a recorded step sees it change
        self._optimiser = torch.optim.SGD(
            model.parameters(),
            lr=self._rate,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        self._loss_sum = torch.zeros((), device=compute.device)
        self._compiled = torch.compile(model, dynamic=False) if compute.compiles else model
        self._steps: dict[int, Step] = {}
        self._stream = torch.cuda.Stream(compute.device) if compute.captures else None

    def get_ready_for(self, examples: int) -> None:
        """Record the steps that a shard of `examples` needs; afterwards the model must be restarted."""
        self._model.train()
        for size in {len(batch) for batch in batches(np.empty(examples), self._recipe.batch)} - self._steps.keys():
            step = self._full_step if size == self._recipe.batch else self._odd_step
            self._steps[size] = step if self._stream is None else captured(step, size, stream=self._stream)

    def restart(self, drawn: Any) -> None:
        """Take the weights of `drawn` and forget the momentum, all in place."""
        import torch

        with torch.no_grad():
            mine, drawn_state = self._model.state_dict(), drawn.state_dict()
            for name, tensor in mine.items():
                tensor.copy_(drawn_state[name])
            for state in self._optimiser.state.values():
                if (momentum := state.get("momentum_buffer")) is not None:
                    momentum.zero_()

    def run(self, shard: Indices, rng: np.random.Generator, report: Report) -> None:
        """Every epoch of the recipe over `shard`, in an order drawn from `rng`."""
        import torch

        epochs = self._recipe.epochs
        self._model.train()
        for epoch in range(epochs):
            start = time.perf_counter()
            self._rate.fill_(cosine(self._recipe.learning_rate, epoch, epochs))
            self._loss_sum.zero_()
            order = torch.from_numpy(shard[rng.permutation(len(shard))].astype(np.int64)).to(self._compute.device)
            for batch in batches(order, self._recipe.batch):
                self._steps[len(batch)](batch)
            loss = float(self._loss_sum) / len(shard)  # waits for the device
            report(Epoch(epoch + 1, epochs, loss, len(shard) / (time.perf_counter() - start)))

    def _full_step(self, indices: "torch.Tensor") -> None:
        self._step(indices, self._compiled)

    def _odd_step(self, indices: "torch.Tensor") -> None:
        """The last, smaller batch: not worth compiling for."""
        self._step(indices, self._model)

    def _step(self, indices: "torch.Tensor", model: Any) -> None:
        self._optimiser.zero_grad(set_to_none=True)
        images = self._gather(indices)
        with self._compute.autocast():
            logits = model(images)
        loss = self._criterion(logits, self._labels.index_select(0, indices))
        loss.backward()
        self._optimiser.step()
        self._loss_sum.add_(loss.detach(), alpha=len(indices))


def cosine(rate: float, epoch: int, epochs: int) -> float:
    """The learning rate of `epoch`, counted from 0, on its way from `rate` to 0.

    >>> [round(cosine(0.1, epoch, 4), 4) for epoch in range(4)]
    [0.1, 0.0854, 0.05, 0.0146]
    """
    return rate * (1.0 + math.cos(math.pi * epoch / epochs)) / 2.0
