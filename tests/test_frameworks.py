"""Models of any framework become one bank: recognised without an import, asked in batches, and every fault named."""

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from airchoir import ScoreBank
from airchoir.frameworks import class_positions, spread

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
Y = RNG.integers(0, 3, 50)
WEIGHTS = RNG.normal(size=(4, 3))


def logits(batch: np.ndarray) -> np.ndarray:
    return np.asarray(batch) @ WEIGHTS


def probabilities(batch: np.ndarray) -> np.ndarray:
    return softmax(logits(batch), axis=1)


def first_scores(model: Any, **options: Any) -> np.ndarray:
    return ScoreBank.from_models([model], X, Y, **options).test_scores[0]


# --- plain functions


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 60), st.sampled_from([logits, probabilities]), st.sampled_from(["float16", "float32"]))
def test_a_function_of_logits_or_probabilities_gives_one_bank_however_it_is_batched(
    size: int, model: Any, dtype: str
) -> None:
    scores = first_scores(model, batch_size=size, dtype=dtype)
    assert scores.dtype == dtype
    np.testing.assert_allclose(scores, probabilities(X), atol=np.finfo(dtype).eps)


def test_progress_counts_every_answer_of_every_model() -> None:
    told: list[tuple[int, int]] = []
    ScoreBank.from_models([logits, probabilities], X, Y, batch_size=20, progress=lambda *seen: told.append(seen))
    assert told == [(20, 100), (40, 100), (50, 100), (70, 100), (90, 100), (100, 100)]


def test_batches_are_of_the_containers_own_kind() -> None:
    seen: list[type] = []

    def model(batch: Any) -> np.ndarray:
        seen.append(type(batch))
        return np.full((len(batch), 3), 1.0 / 3.0)

    containers: list[Any] = [X, X.tolist()]
    for name in ("pandas", "polars"):
        if find_spec(name):
            containers.append(import_module(name).DataFrame(dict(zip("abcd", X.T, strict=True))))
    for samples in containers:
        ScoreBank.from_models([model], samples, Y, batch_size=30)
    assert seen == [type(each) for each in containers for _ in range(2)]


def test_validation_and_metadata_join_the_bank(tmp_path: Path) -> None:
    bank = ScoreBank.from_models([logits], X, Y, validation=(X[:7], Y[:7]), metadata={"task": "toy"})
    assert bank.val_scores is not None
    np.testing.assert_array_equal(bank.val_scores[0], bank.test_scores[0, :7])
    np.testing.assert_array_equal(bank.val_labels, Y[:7])
    assert dict(bank.metadata) == {"task": "toy"}
    bank.save(tmp_path / "toy.safetensors")
    assert ScoreBank.load(tmp_path / "toy.safetensors").queries == 50


def test_logits_or_probabilities_may_be_said() -> None:
    np.testing.assert_allclose(first_scores(logits, logits=True), probabilities(X), atol=1e-6)
    np.testing.assert_allclose(first_scores(probabilities, logits=False), probabilities(X), atol=1e-6)
    shifted = first_scores(lambda batch: np.full((len(batch), 3), 0.5), logits=True)
    np.testing.assert_allclose(shifted, 1.0 / 3.0, atol=1e-6)
    with pytest.raises(ValueError, match=r"model 0 \(function\) returns probabilities already; leave logits=True out"):
        first_scores(probabilities, logits=True)
    with pytest.raises(ValueError, match=r"test_scores of client 0, query 0 (are negative|sum to)"):
        first_scores(logits, logits=False)


def test_what_is_neither_is_asked_about() -> None:
    """Sigmoids: each between 0 and 1, and no distribution."""
    with pytest.raises(ValueError, match="neither probabilities nor plainly logits; say logits=True, or divide"):
        first_scores(lambda batch: 1.0 / (1.0 + np.exp(-logits(batch))))


def test_log_probabilities_are_logits() -> None:
    np.testing.assert_allclose(first_scores(lambda batch: np.log(probabilities(batch))), probabilities(X), atol=1e-6)


def without(row: int, value: float) -> Any:
    def model(batch: np.ndarray) -> np.ndarray:
        scores = probabilities(batch)
        scores[np.flatnonzero((batch == X[row]).all(axis=1))] = value
        return scores

    return model


FAULTS = [
    (without(33, np.nan), r"model 0 \(function\) answers row 33 with \[nan nan nan\], not finite"),
    (lambda batch: probabilities(batch)[:-1], r"answers 20 samples from row 0 on with float64 \(19, 3\)"),
    (lambda batch: probabilities(batch)[:, 0], r"it must return real numbers of shape \(20, classes\)"),
    (lambda batch: np.array([["a"]] * len(batch)), "must return real numbers"),
    (lambda batch: [[1.0]] * len(batch), "deciding needs at least 2"),
    ("model.pickle", r"model 0 \(model.pickle\) is a path but no .onnx file; load the model and give the object"),
    (Path("nowhere.onnx"), r"model 0 \(nowhere.onnx\): nowhere.onnx does not exist"),
    (3.0, r"model 0 \(float\) is no model: give a torch module"),
]


@pytest.mark.parametrize(("model", "complaint"), FAULTS, ids=[complaint[:30] for _, complaint in FAULTS])
def test_a_fault_names_the_model_and_the_row_in_one_line(model: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        first_scores(model, batch_size=20)
    assert "\n" not in str(caught.value)


def test_models_samples_and_batches_must_be_there_and_agree() -> None:
    with pytest.raises(ValueError, match="there are 0 models and 50 test samples"):
        ScoreBank.from_models([], X, Y)
    with pytest.raises(ValueError, match="there are 1 models and 0 val samples"):
        ScoreBank.from_models([logits], X, Y, validation=(X[:0], Y[:0]))
    with pytest.raises(ValueError, match="batch_size must be a whole number >= 1, got 0"):
        ScoreBank.from_models([logits], X, Y, batch_size=0)
    with pytest.raises(ValueError, match="model 1 returns 2 columns and model 0 3"):
        ScoreBank.from_models([logits, lambda batch: logits(batch)[:, :2]], X, Y)


# --- classes


def test_labels_of_any_kind_need_an_order_of_columns() -> None:
    names = np.array(["c", "a", "b"])
    bank = ScoreBank.from_models([logits], X, names[Y], classes=names)
    np.testing.assert_array_equal(bank.test_labels, Y)
    assert json.loads(bank.metadata["classes"]) == ["c", "a", "b"]
    with pytest.raises(ValueError, match="give classes=, in that order"):
        ScoreBank.from_models([logits], X, names[Y])
    with pytest.raises(ValueError, match=r"test_labels holds 'c', which is none of the 2 classes"):
        ScoreBank.from_models([logits], X, names[Y], classes=["a", "b"])
    with pytest.raises(ValueError, match="classes must be a list of different labels"):
        ScoreBank.from_models([logits], X, names[Y], classes=["a", "a", "c"])
    with pytest.raises(ValueError, match="returns 3 columns for 4 classes; give classes="):
        ScoreBank.from_models([logits], X, names[Y], classes=["a", "b", "c", "d"])


@settings(deadline=None, derandomize=True)
@given(st.sets(st.integers(-5, 5), min_size=1), st.sets(st.integers(-5, 5)), st.data())
def test_columns_of_known_classes_land_in_their_places(known: set[int], more: set[int], data: st.DataObject) -> None:
    some = np.array(data.draw(st.permutations(sorted(known))))
    every = np.array(data.draw(st.permutations(sorted(known | more))))
    rows = np.arange(1.0, len(some) + 1.0)[None]
    whole = spread(rows, some, every, "model")
    assert dict(zip(every.tolist(), whole[0].tolist(), strict=True)) == {
        label: float(some.tolist().index(label) + 1) if label in known else 0.0 for label in every.tolist()
    }
    assert every[class_positions(some, every, "model")].tolist() == some.tolist()


# --- scikit-learn


def test_scikit_learn_models_bring_their_classes_even_where_one_is_unknown_to_some() -> None:
    pytest.importorskip("sklearn", reason="needs airchoir[demo]")
    from sklearn.linear_model import RidgeClassifier
    from sklearn.naive_bayes import GaussianNB

    names = np.array(["x", "y", "z"])[Y]
    models = [GaussianNB().fit(X, names), GaussianNB().fit(X[Y > 0], names[Y > 0])]
    bank = ScoreBank.from_models(models, X, names)
    np.testing.assert_allclose(bank.test_scores[0], models[0].predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(bank.test_scores[1, :, 1:], models[1].predict_proba(X), atol=1e-6)
    assert (bank.test_scores[1, :, 0] == 0.0).all()
    assert json.loads(bank.metadata["classes"]) == ["x", "y", "z"]
    mixed = ScoreBank.from_models([*models, logits], X, names)
    assert mixed.clients == 3
    with pytest.raises(ValueError, match=r"model 0 \(RidgeClassifier\) has no predict_proba, .* wrap it"):
        ScoreBank.from_models([RidgeClassifier().fit(X, Y)], X, Y)


# --- nothing is imported


def test_recognising_imports_no_framework() -> None:
    program = """
import sys
import numpy as np
from airchoir import ScoreBank
ScoreBank.from_models([lambda X: np.full((len(X), 2), 0.5)], np.zeros((3, 1)), [0, 1, 0])
print([name for name in ("torch", "sklearn", "onnxruntime", "pandas", "polars") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


def test_without_onnxruntime_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.onnx").touch()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ValueError, match=r"model 0 \(m.onnx\) needs onnxruntime, .* pip install 'airchoir\[onnx\]'$"):
        first_scores(tmp_path / "m.onnx")


# --- torch


def test_torch_modules_are_asked_in_evaluation_mode_and_left_as_they_were() -> None:
    torch = pytest.importorskip("torch", reason="torch modules need airchoir[train]; run make test-all")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)
    )
    net[2].eval()
    modes = [part.training for part in net.modules()]
    scores = first_scores(net, batch_size=7)
    assert [part.training for part in net.modules()] == modes
    with torch.inference_mode():
        expected = net.eval()(torch.as_tensor(X, dtype=torch.float32)).softmax(1).numpy()
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    np.testing.assert_allclose(first_scores(torch.nn.Sequential(net, torch.nn.Softmax(1))), expected, atol=1e-6)
    bank = ScoreBank.from_models([net.double()], torch.as_tensor(X), Y)
    np.testing.assert_allclose(bank.test_scores[0], expected, atol=1e-6)


def test_torch_modules_of_whole_numbers_and_of_named_outputs() -> None:
    torch = pytest.importorskip("torch", reason="torch modules need airchoir[train]; run make test-all")

    class Language(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag = torch.nn.EmbeddingBag(9, 3)

        def forward(self, tokens: Any) -> Any:
            return type("Output", (), {"logits": self.bag(tokens)})()

    tokens = RNG.integers(0, 9, (50, 5))
    assert ScoreBank.from_models([Language()], tokens, Y).classes == 3
    pair = torch.nn.LSTM(4, 3)
    with pytest.raises(ValueError, match=r"model 0 \(LSTM\) returns a tuple; give a function that picks the tensor"):
        first_scores(pair)


# --- ONNX


def write_onnx(path: Path, *, batch: int | None = None, outputs: int = 1, dtype: str = "FLOAT") -> Path:
    """X @ WEIGHTS as an ONNX file."""
    onnx = pytest.importorskip("onnx", reason="writing ONNX files needs onnx; run make test")
    pytest.importorskip("onnxruntime", reason="ONNX files need airchoir[onnx]")
    kind = getattr(onnx.TensorProto, dtype)
    helper = onnx.helper
    names = [f"scores{index}" for index in range(outputs)]
    weights = onnx.numpy_helper.from_array(WEIGHTS.astype("f4" if dtype == "FLOAT" else "f8"), "weights")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weights"], [name]) for name in names],
        "linear",
        [helper.make_tensor_value_info("x", kind, [batch, 4])],
        [helper.make_tensor_value_info(name, kind, [batch, 3]) for name in names],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path


@pytest.mark.parametrize("batch", [None, 1, 16])
@pytest.mark.parametrize("dtype", ["FLOAT", "DOUBLE"])
def test_onnx_files_and_sessions_of_any_batch_size(tmp_path: Path, batch: int | None, dtype: str) -> None:
    path = write_onnx(tmp_path / "linear.onnx", batch=batch, dtype=dtype)
    import onnxruntime

    for model in (path, str(path), onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])):
        np.testing.assert_allclose(first_scores(model), probabilities(X), atol=1e-5)


def test_an_onnx_file_that_is_none_or_has_two_outputs_is_named(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "two.onnx", outputs=2)
    with pytest.raises(
        ValueError, match=r"model 0 \(two.onnx\) must have one numeric input and one output .*give a function"
    ):
        first_scores(path)
    (tmp_path / "broken.onnx").write_bytes(b"no such thing")
    with pytest.raises(ValueError, match=r"broken.onnx is no ONNX file that onnxruntime reads") as caught:
        first_scores(tmp_path / "broken.onnx")
    assert "\n" not in str(caught.value)
