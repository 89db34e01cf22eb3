"""What models of any framework say: class probabilities, and no framework is imported to find out.

A framework is recognised by what the model is: a path that ends in .onnx, an ONNX Runtime session, a torch module (torch is
loaded then, for it made the module), anything with `predict_proba`, or a plain function. Only a path to an ONNX file, which
no library has touched yet, makes us import one: onnxruntime, inside a function.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airchoir._types import Float, Indices, Probabilities

Ask = Callable[[Any], NDArray[Any]]
"""A batch of samples in, one row of numbers per sample out."""
Progress = Callable[[int, int], None]
"""Called with (answers given, answers in all): one answer per model and sample."""

_SUM_TOLERANCE = 1e-3
_ROW_TOLERANCE = 1e-5


def probabilities(
    models: Sequence[Any],
    X: Any,
    *,
    classes: NDArray[Any] | None,
    logits: bool | None,
    batch_size: int,
    progress: Progress | None = None,
) -> Iterator[Probabilities]:
    """Model by model, its class probabilities for every sample, columns in the order of `classes` (None: its own).

    `logits` says what torch modules, ONNX files and functions return; None tells it from all the rows of a model:
    non-negative and summing to 1 are probabilities, anything negative or above 1 are logits, and the rest is refused.
    """
    if not (isinstance(batch_size, int | np.integer) and batch_size >= 1):
        raise ValueError(f"batch_size must be a whole number >= 1, got {batch_size!r}; it is samples per call")
    samples, report = count_rows(X), progress or (lambda done, total: None)
    for index, model in enumerate(models):
        name = describe(index, model)
        ask, size = opened(model, name)
        step = size or batch_size
        answers = []
        for start in range(0, samples, step):
            batch = take_rows(X, start, min(start + step, samples))
            answers.append(_checked(ask(batch), name, start, count_rows(batch)))
            report(index * samples + start + len(answers[-1]), len(models) * samples)
        rows = np.concatenate(answers)
        if known_classes(model) is None:
            rows = _as_probabilities(rows, name, logits)
        yield spread(rows, known_classes(model), classes, name)


def class_labels(models: Sequence[Any], truths: Sequence[Any], classes: Sequence[Any] | None) -> NDArray[Any] | None:
    """All labels: those given in their order, or those of the truths and of every model that knows its own, sorted.

    None where no model knows any and the labels are numbers already: the classes are then 0, 1, ...
    """
    if classes is not None:
        given = np.asarray(classes)
        if given.ndim != 1 or len(np.unique(given)) < len(given):
            raise ValueError(f"classes must be a list of different labels, got {list(classes)!r}; one for each column")
        return given
    known = [found for found in map(known_classes, models) if found is not None]
    if not known and all(truth.dtype.kind in "iub" for truth in map(np.asarray, truths)):
        return None
    if not known:
        raise ValueError("labels that are no whole numbers need an order of columns; give classes=, in that order")
    return np.unique(np.concatenate([*known, *truths]))


def all_classes(models: Sequence[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Every label that occurs in y or that a model knows, sorted."""
    known = [np.asarray(model.classes_) for model in models if hasattr(model, "classes_")]
    if len({labels.dtype.kind in "biuf" for labels in [y, *known]}) > 1:
        raise ValueError("some models know labels of another type than y's; fit all on labels as in y")
    return np.unique(np.concatenate([*known, y]))


def votes(model: Any, X: Any, classes: NDArray[Any], name: str) -> Probabilities:
    """One-hot rows of what the model predicts; it needs `predict` alone."""
    return np.eye(len(classes))[class_positions(np.asarray(model.predict(X)), classes, name)]


def beliefs(model: Any, X: Any, classes: NDArray[Any], name: str) -> Probabilities:
    """The model's class probabilities over all classes; it needs `predict_proba`."""
    if not hasattr(model, "predict_proba"):
        raise AttributeError(f"{name}, {type(model).__name__}, has no predict_proba; use voting='hard'")
    rows = spread(_checked(model.predict_proba(X), name, 0, count_rows(X)), known_classes(model), classes, name)
    bad = np.flatnonzero((np.abs(rows.sum(axis=1) - 1.0) > _ROW_TOLERANCE) | (rows < 0.0).any(axis=1))
    if len(bad):
        raise ValueError(f"{name} answers row {bad[0]} with {rows[bad[0]]}, no probabilities; mend the model")
    return rows


def describe(index: int, model: Any) -> str:
    """A model's number and kind, for people.

    >>> describe(3, "clients/north.onnx")
    'model 3 (north.onnx)'
    """
    return f"model {index} ({Path(model).name if isinstance(model, str | os.PathLike) else type(model).__name__})"


def opened(model: Any, name: str) -> tuple[Ask, int | None]:
    """How to ask a model of any framework, and the one batch size that it takes where it takes but one."""
    if isinstance(model, str | os.PathLike):
        return _onnx_session(_onnx_file(Path(model), name), name)
    if _is_a(model, "torch.nn", "Module"):
        return _torch_module(model, name), None
    if _is_a(model, "onnxruntime", "InferenceSession"):
        return _onnx_session(model, name)
    if hasattr(model, "predict_proba"):
        return model.predict_proba, None
    if hasattr(model, "predict"):
        raise ValueError(
            f"{name} has no predict_proba, and a bank holds probabilities; wrap it, as in CalibratedClassifierCV, or give "
            f"a function that returns them"
        )
    if callable(model):
        return model, None
    raise ValueError(
        f"{name} is no model: give a torch module, a path to an .onnx file, something with predict_proba, or a function"
    )


def known_classes(model: Any) -> NDArray[Any] | None:
    """The labels of the columns of `predict_proba`, where the model knows them."""
    found = getattr(model, "classes_", None) if hasattr(model, "predict_proba") else None
    return None if found is None else np.asarray(found)


def class_positions(known: NDArray[Any], classes: NDArray[Any], name: str) -> Indices:
    """The place of each of the `known` labels among all `classes`."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    distinct, which = np.unique(known, return_inverse=True)
    strange = [label for label in distinct.tolist() if label not in places]
    if strange:
        raise ValueError(f"{name} holds {strange[0]!r}, which is none of the {len(classes)} classes; add it to them")
    return np.array([places[label] for label in distinct.tolist()], dtype=np.intp)[which]


def spread(rows: Float, known: NDArray[Any] | None, classes: NDArray[Any] | None, name: str) -> Float:
    """Rows over the classes that a model knows as rows over all classes; those it has never seen get 0."""
    if known is None or classes is None:
        if classes is not None and rows.shape[1] != len(classes):
            raise ValueError(f"{name} returns {rows.shape[1]} columns for {len(classes)} classes; give classes=")
        return rows
    if rows.shape[1] != len(known):
        raise ValueError(f"{name} returns {rows.shape[1]} columns but knows {len(known)} classes; mend the model")
    whole = np.zeros((len(rows), len(classes)), dtype=rows.dtype)
    whole[:, class_positions(known, classes, name)] = rows
    return whole


def count_rows(X: Any) -> int:
    """How many samples an array, frame, sparse matrix, tensor or list holds."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, start: int, stop: int) -> Any:
    """The samples from `start` to `stop`, in a container of the same kind."""
    return X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]


def _is_a(model: Any, module: str, name: str) -> bool:
    """Whether the model is an instance of a class whose module may never have been imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(model, kind)


def _checked(answer: Any, name: str, start: int, samples: int) -> NDArray[Any]:
    """One batch of answers as an array of real numbers, or the first row that is wrong."""
    rows = np.asarray(answer)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or len(rows) != samples or rows.shape[1] == 0:
        raise ValueError(
            f"{name} answers {samples} samples from row {start} on with {rows.dtype} {rows.shape}; it must return real "
            f"numbers of shape ({samples}, classes)"
        )
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise ValueError(f"{name} answers row {start + bad[0]} with {rows[bad[0]]}, not finite; mend the model")
    return rows


def _as_probabilities(rows: NDArray[Any], name: str, logits: bool | None) -> NDArray[Any]:
    sums = rows.sum(axis=1, dtype=np.float64)
    off = np.abs(sums - 1.0) > _SUM_TOLERANCE
    if logits is None:
        if not off.any() and rows.min() >= 0.0:
            return rows
        if rows.min() >= 0.0 and rows.max() <= 1.0:
            row = int(np.argmax(off))
            raise ValueError(
                f"{name} returns numbers between 0 and 1 that sum to {sums[row]:.6g} in row {row}: neither probabilities "
                f"nor plainly logits; say logits=True, or divide by the sum"
            )
        logits = True
    if not logits:
        return rows  # the bank's own check names what is wrong with them
    if rows.min() >= 0.0 and not off.any():
        raise ValueError(f"{name} returns probabilities already; leave logits=True out")
    shifted = rows.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


def _torch_module(model: Any, name: str) -> Ask:
    """Asks in evaluation mode, without gradients, on the module's own device and in its own precision."""
    torch = sys.modules["torch"]
    parameter = next(model.parameters(), None)

    def ask(batch: Any) -> NDArray[Any]:
        given = batch if torch.is_tensor(batch) else torch.as_tensor(np.array(batch))
        if parameter is not None:
            own = parameter.dtype if given.is_floating_point() else given.dtype
            given = given.to(device=parameter.device, dtype=own)
        modes = [(part, part.training) for part in model.modules()]
        try:
            model.eval()
            with torch.inference_mode():
                answer = model(given)
        finally:
            for part, training in modes:
                part.training = training
        answer = getattr(answer, "logits", answer)
        if not torch.is_tensor(answer):
            raise ValueError(
                f"{name} returns a {type(answer).__name__}; give a function that picks the tensor of scores"
            )
        rows: NDArray[Any] = answer.to(dtype=torch.float64, device="cpu").numpy()
        return rows

    return ask


def _onnx_file(path: Path, name: str) -> Any:
    if path.suffix != ".onnx":
        raise ValueError(f"{name} is a path but no .onnx file; load the model and give the object")
    if not path.is_file():
        raise ValueError(f"{name}: {path} does not exist; check the name")
    try:
        import onnxruntime
    except ImportError:
        raise ValueError(
            f"{name} needs onnxruntime, which is not installed; run: pip install 'airchoir[onnx]'"
        ) from None
    try:
        return onnxruntime.InferenceSession(str(path), providers=onnxruntime.get_available_providers())
    except Exception as error:
        raise ValueError(f"{path} is no ONNX file that onnxruntime reads: {str(error).splitlines()[0]}") from None


def _onnx_session(session: Any, name: str) -> tuple[Ask, int | None]:
    """Asks a session with one input; of its outputs the one that holds a row of real numbers per sample."""
    inputs, outputs = session.get_inputs(), session.get_outputs()
    scores = [each.name for each in outputs if each.type in _ONNX_SCORES and len(each.shape) == 2]
    if len(inputs) != 1 or len(scores) != 1 or inputs[0].type not in _ONNX_INPUTS:
        listed = ", ".join(f"{each.name} {each.type}" for each in [*inputs, *outputs])
        raise ValueError(
            f"{name} must have one numeric input and one output (samples, classes), has {listed}; give a function instead "
            f"(scikit-learn's converter: options={{'zipmap': False}})"
        )
    dtype = _ONNX_INPUTS[inputs[0].type]
    fixed = inputs[0].shape[0] if inputs[0].shape and isinstance(inputs[0].shape[0], int) else None

    def ask(batch: Any) -> NDArray[Any]:
        given = np.ascontiguousarray(np.asarray(batch), dtype=dtype)
        short = (fixed or len(given)) - len(given)
        if short:
            given = np.concatenate([given, np.repeat(given[-1:], short, axis=0)])
        rows: NDArray[Any] = session.run(scores, {inputs[0].name: given})[0]
        return rows[: len(rows) - short]

    return ask, fixed


_ONNX_SCORES: dict[str, np.dtype[Any]] = {
    "tensor(float)": np.dtype("f4"),
    "tensor(double)": np.dtype("f8"),
    "tensor(float16)": np.dtype("f2"),
}
_ONNX_INPUTS = {**_ONNX_SCORES, "tensor(int64)": np.dtype("i8"), "tensor(int32)": np.dtype("i4")}
