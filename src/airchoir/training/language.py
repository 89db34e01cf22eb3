"""Text classifiers by name: a transformers model with a new head, the weights it starts from, and its tokeniser."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airchoir.training.compute import require_torch
from airchoir.training.weights import State, fetched, fingerprint, fitting, package, read_weights

_OFFLINE = "give --model transformers:DIRECTORY"


@dataclass(frozen=True, eq=False)
class TextModel:
    """A classifier by name, and where its weights come from."""

    config: Any
    tokeniser: Any
    name: str
    given: State
    """The weights of everything but the head; empty where everything is drawn."""
    source: str

    @property
    def pad(self) -> int:
        """The token that fills up short texts."""
        return int(self.config.pad_token_id)

    def draw(self) -> Any:
        """A model on the CPU: the given weights, and what they lack from torch's random numbers."""
        model = _blank(self.config)
        model.load_state_dict({**model.state_dict(), **self.given})
        return model

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the given weights."""
        return fingerprint(self.given)


def text_model(model: str, weights: str, *, classes: int) -> TextModel:
    """The classifier called `transformers:NAME`, with weights `pretrained`, `none` or from a `.safetensors` file."""
    torch = require_torch()
    kind, _, name = model.partition(":")
    if kind != "transformers" or not name:
        raise ValueError(f"a text model is called transformers: and a hub name or a directory, got {model!r}")
    called = f"transformers:{_told(name)}"
    transformers = package("transformers")
    with _quiet(transformers), torch.random.fork_rng(devices=[]):
        config = fetched(model, _OFFLINE, lambda: transformers.AutoConfig.from_pretrained(name, num_labels=classes))
        tokeniser = fetched(model, _OFFLINE, lambda: transformers.AutoTokenizer.from_pretrained(name))
        pad = tokeniser.pad_token_id
        config.pad_token_id = tokeniser.eos_token_id if pad is None else pad
        blank = _blank(config)
        if weights == "none":
            return TextModel(config, tokeniser, called, {}, "none")
        base = f"{blank.base_model_prefix}."
        if weights == "pretrained":
            source, state = _told(name), fetched(model, _OFFLINE, lambda: _pretrained(name, config))
        else:
            source, state = read_weights(weights, "pretrained")
            if not any(tensor.startswith(base) for tensor in state):  # a file of the model without any head
                state = {base + tensor: values for tensor, values in state.items()}
        wanted = blank.state_dict()
    given = fitting(state, wanted, f"weights {weights}", model, is_new=lambda tensor: not tensor.startswith(base))
    return TextModel(config, tokeniser, called, given, source)


def _told(name: str) -> str:
    """A hub name as it is, and of a directory only what it is called: where it lay is nobody's business."""
    return Path(name).resolve().name if Path(name).is_dir() else name


def _blank(config: Any) -> Any:
    return package("transformers").AutoModelForSequenceClassification.from_config(config).float()


def _pretrained(name: str, config: Any) -> State:
    loaded, report = package("transformers").AutoModelForSequenceClassification.from_pretrained(
        name, config=config, output_loading_info=True
    )
    base = f"{loaded.base_model_prefix}."
    missing = sorted(tensor for tensor in report["missing_keys"] if tensor.startswith(base))
    if missing:
        raise ValueError(f"its weights lack {missing[0]}")
    state: State = loaded.float().state_dict()
    return state


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without the bars and notes of the library: progress is drawn elsewhere."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
