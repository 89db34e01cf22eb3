"""`airchoir bank show|check|import`: arrays become banks, banks are described, faults are named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from airchoir import ScoreBank

BankFile = Callable[..., Path]
PROBABILITIES = np.array(
    [[[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]], [[0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]]
)  # exact in every type
LABELS = np.array([1, 2])
VAL_PROBABILITIES = PROBABILITIES[:, :1, ::-1]
VAL_LABELS = np.array([1])


@pytest.fixture
def arrays(folder: Path) -> Path:
    """A folder with the arrays above, as .npy and as .npz."""
    parts = {
        "test_scores": PROBABILITIES,
        "test_labels": LABELS,
        "val_scores": VAL_PROBABILITIES,
        "val_labels": VAL_LABELS,
    }
    for name, array in parts.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "all.npz", **parts)
    np.savez_compressed(folder / "test.npz", test_scores=PROBABILITIES, test_labels=LABELS)
    return folder


# --- import

PLAIN = "test_scores.npy test_labels.npy"
VALIDATION = "--val-scores val_scores.npy --val-labels val_labels.npy"


@pytest.mark.parametrize(
    ("line", "validated"),
    [
        (PLAIN, False),
        ("test.npz", False),
        (f"{PLAIN} {VALIDATION}", True),
        ("all.npz", True),
        (f"test.npz {VALIDATION}", True),
    ],
)
@pytest.mark.parametrize("dtype", [None, "float16", "float32"])
def test_arrays_become_a_bank_of_the_wanted_type(
    run: Any, arrays: Path, line: str, validated: bool, dtype: str | None
) -> None:
    wanted = ["--dtype", dtype] if dtype else []
    ran = run("bank", "import", *line.split(), "--out", "new/bank.safetensors", *wanted)
    assert (ran.status, ran.err) == (0, "")
    assert all(word in ran.out for word in ("new/bank.safetensors", "2 clients", "2 queries", "3 classes"))
    bank = ScoreBank.load(arrays / "new" / "bank.safetensors")
    assert bank.test_scores.dtype == (dtype or "float16")
    np.testing.assert_array_equal(bank.test_scores, PROBABILITIES)
    np.testing.assert_array_equal(bank.test_labels, LABELS)
    assert (bank.val_scores is not None) == validated
    if validated:
        np.testing.assert_array_equal(bank.val_scores, VAL_PROBABILITIES)
        np.testing.assert_array_equal(bank.val_labels, VAL_LABELS)


def test_logits_become_the_softmax_in_test_and_validation(run: Any, folder: Path) -> None:
    logits = np.random.default_rng(5).normal(0.0, 4.0, (2, 4, 3))
    np.save(folder / "logits.npy", logits)
    np.save(folder / "labels.npy", np.array([0, 1, 2, 0]))
    files = ["logits.npy", "labels.npy", "--val-scores", "logits.npy", "--val-labels", "labels.npy"]
    assert run("bank", "import", *files, "--logits", "--dtype", "float32", "--out", "bank").status == 0
    bank = ScoreBank.load(folder / "bank")
    softmax = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(bank.test_scores, softmax, rtol=1e-6)
    np.testing.assert_allclose(bank.val_scores, softmax, rtol=1e-6)


def test_metadata_are_kept_as_given(run: Any, arrays: Path) -> None:
    metadata = {"task": "my-task", "note": "a=b, c", "empty": "", "recipe": '{"epochs": 3}'}
    pairs = [word for key, value in metadata.items() for word in ("--meta", f"{key}={value}")]
    assert run("bank", "import", *PLAIN.split(), "--out", "bank", *pairs).status == 0
    assert ScoreBank.load(arrays / "bank").metadata == {**metadata, "format": "1"}


def test_an_imported_bank_passes_the_check_and_can_be_evaluated(run: Any, read_json: Any, arrays: Path) -> None:
    assert run("bank", "import", "all.npz", "--out", "bank").status == 0
    assert run("bank", "check", "bank").status == 0
    found = read_json("evaluate", "bank", "--access", "best-client", "--snr-db", "inf")
    assert found["accuracy"] == 1.0  # client 1, who is right in validation, is always right; client 0 never


def test_an_import_replaces_an_older_bank(run: Any, arrays: Path, bank_file: BankFile) -> None:
    path = bank_file("bank")
    assert run("bank", "import", *PLAIN.split(), "--out", path).status == 0
    assert ScoreBank.load(path).clients == 2
    assert not [other for other in arrays.iterdir() if other.name.startswith(".")]


def wrong(place: tuple[int, ...], value: float) -> np.ndarray:
    scores = PROBABILITIES.copy()
    scores[place] = value
    return scores


BAD_ARRAYS: dict[str, tuple[np.ndarray, np.ndarray, str]] = {
    "NaN": (wrong((1, 0, 1), np.nan), LABELS, "client 1, query 0 hold NaN"),
    "infinite": (wrong((1, 0, 1), np.inf), LABELS, "client 1, query 0"),
    "negative": (wrong((0, 1, 2), -0.125), LABELS, "client 0, query 1 are negative"),
    "not summing to 1": (wrong((1, 1, 0), 0.75), LABELS, "client 1, query 1 sum to 1.5"),
    "rank 2": (PROBABILITIES[0], LABELS, "(2, 3)"),
    "rank 4": (PROBABILITIES[None], LABELS, "(1, 2, 2, 3)"),
    "complex": (PROBABILITIES + 0j, LABELS, "complex128"),
    "text": (PROBABILITIES.astype(str), LABELS, "<U"),
    "no clients": (PROBABILITIES[:0], LABELS, "0 clients"),
    "no queries": (PROBABILITIES[:, :0], LABELS[:0], "0 queries"),
    "one class": (np.ones((2, 2, 1)), 0 * LABELS, "1 class"),
    "labels int32": (PROBABILITIES, LABELS.astype(np.int32), "int32"),
    "labels float": (PROBABILITIES, LABELS.astype(float), "float64"),
    "label too large": (PROBABILITIES, np.array([0, 3]), "query 1 is 3"),
    "label negative": (PROBABILITIES, np.array([-1, 0]), "query 0 is -1"),
    "too many labels": (PROBABILITIES, np.array([0, 1, 2]), "(3,)"),
    "labels rank 2": (PROBABILITIES, LABELS[:, None], "(2, 1)"),
}


@pytest.mark.parametrize("fault", BAD_ARRAYS)
def test_arrays_that_are_no_bank_are_refused_and_nothing_is_written(refused: Any, folder: Path, fault: str) -> None:
    scores, labels, what = BAD_ARRAYS[fault]
    np.save(folder / "scores.npy", scores)
    np.save(folder / "labels.npy", labels)
    np.savez(folder / "both.npz", test_scores=scores, test_labels=labels)
    assert what in refused("bank", "import", "scores.npy", "labels.npy", "--out", "new/bank")
    assert what in refused("bank", "import", "both.npz", "--out", "new/bank")


def test_validation_that_does_not_fit_is_refused(refused: Any, arrays: Path) -> None:
    np.save(arrays / "one.npy", VAL_PROBABILITIES[:1])
    line = ["bank", "import", *PLAIN.split(), "--out", "bank", "--val-labels", "val_labels.npy", "--val-scores"]
    assert "(1, 3)" in refused(*line, "one.npy")
    assert "missing.npy does not exist" in refused(*line, "missing.npy")


@pytest.mark.parametrize(
    ("line", "what", "remedy"),
    [
        ("test_scores.npy", "test_scores.npy comes without labels", "second .npy"),
        ("all.npz test_labels.npy", "all.npz is a .npz and brings its own labels", "leave test_labels.npy out"),
        ("missing.npy test_labels.npy", "missing.npy does not exist", "check"),
        ("test_scores.npy missing.npy", "missing.npy does not exist", "check"),
        ("folder.npy test_labels.npy", "folder.npy is a folder", "file"),
        ("notes.txt test_labels.npy", "notes.txt is neither .npy nor .npz", "numpy.save"),
        ("text.npy test_labels.npy", "text.npy is not a whole .npy file", "numpy.save"),
        ("text.npz", "text.npz is not a whole .npz file", "numpy.savez"),
        ("cut.npy test_labels.npy", "cut.npy is not a whole .npy file", "numpy.save"),
        (f"{PLAIN} --val-scores val_scores.npy", "--val-scores and --val-labels belong together", "both"),
        (f"{PLAIN} --val-labels val_labels.npy", "--val-scores and --val-labels belong together", "both"),
        (f"{PLAIN} --dtype float64", "'float64'", ""),
        (f"{PLAIN} --dtype f4", "'f4'", ""),
        (f"{PLAIN} --meta task", '--meta wants KEY=VALUE, got "task"', ""),
        (f"{PLAIN} --meta =digits", '--meta wants KEY=VALUE, got "=digits"', ""),
    ],
)
def test_an_import_of_the_wrong_files_or_options_is_refused(
    refused: Any, arrays: Path, line: str, what: str, remedy: str
) -> None:
    (arrays / "folder.npy").mkdir()
    for name in ("notes.txt", "text.npy", "text.npz"):
        (arrays / name).write_text("no numbers here\n")
    (arrays / "cut.npy").write_bytes((arrays / "test_scores.npy").read_bytes()[:-8])
    complaint = refused("bank", "import", *line.split(), "--out", "new/bank")
    assert what in complaint
    assert remedy in complaint.split(what, 1)[1]


def test_an_import_onto_a_folder_or_below_a_file_is_refused(refused: Any, arrays: Path) -> None:
    (arrays / "folder").mkdir()
    assert "folder is a folder" in refused("bank", "import", *PLAIN.split(), "--out", "folder")
    assert "all.npz" in refused("bank", "import", *PLAIN.split(), "--out", "all.npz/bank")


# --- show


def test_show_describes_shapes_metadata_and_how_good_each_client_is(
    read_json: Any, run: Any, bank_file: BankFile
) -> None:
    path = bank_file(clients=3, queries=40, classes=4)
    bank = ScoreBank.load(path)
    found = read_json("bank", "show", path)
    expected = {
        "path": str(path),
        "clients": 3,
        "test_queries": 40,
        "classes": 4,
        "val_queries": 40,
        "dtype": "float32",
    }
    assert found.items() >= expected.items()
    assert found["metadata"] == {"task": "synthetic", "seed": "0", "format": "1"}
    alone = [100 * accuracy_score(bank.test_labels, rows.argmax(axis=-1)) for rows in bank.test_scores]
    said = f"{min(alone):.2f} to {max(alone):.2f}, mean {sum(alone) / 3:.2f}"
    assert found["client_accuracy_percent"] == said
    ran = run("bank", "show", path)
    assert (ran.status, ran.err) == (0, "")
    rows = dict(
        tuple(cell.strip() for cell in line.split("│")[1:3]) for line in ran.out.splitlines() if line.startswith("│")
    )
    assert rows.items() >= {"clients": "3", "test queries": "40", "task": "synthetic", "seed": "0"}.items()
    assert rows["client accuracy percent"] == said


def test_show_of_a_bank_without_validation_counts_none(read_json: Any, run: Any, arrays: Path) -> None:
    assert run("bank", "import", *PLAIN.split(), "--out", "bank").status == 0
    assert read_json("bank", "show", "bank")["val_queries"] == 0


def test_show_keeps_long_metadata_on_one_line_and_markup_as_text(run: Any, arrays: Path) -> None:
    sizes = json.dumps(list(range(200)))
    line = ["bank", "import", *PLAIN.split(), "--out", "[red]bank", "--meta", f"sizes={sizes}", "--meta", "k=[b]v[/b]"]
    assert run(*line).status == 0
    lines = run("bank", "show", "[red]bank").out.splitlines()
    assert lines[0] == "[red]bank"
    (row,) = (line for line in lines if "sizes" in line)
    assert sizes[:90] in row
    assert any("[b]v[/b]" in line for line in lines)


# --- check


def test_check_of_whole_banks_exits_0_and_names_each(run: Any, bank_file: BankFile) -> None:
    paths = [bank_file(f"{clients}.safetensors", clients=clients) for clients in (1, 2)]
    ran = run("bank", "check", *paths)
    assert (ran.status, ran.err) == (0, "")
    assert [line.split(":")[0] for line in ran.out.splitlines()] == [str(path) for path in paths]


def test_check_of_a_bad_bank_among_good_ones_exits_2_and_names_the_first_bad_one(
    run: Any, bank_file: BankFile, folder: Path
) -> None:
    good = bank_file()
    for name in ("first.safetensors", "second.safetensors"):
        (folder / name).write_bytes(good.read_bytes()[:-1])
    ran = run("bank", "check", good, folder / "first.safetensors", folder / "second.safetensors")
    assert ran.status == 2
    assert ran.err.count("\n") == 1
    assert "first.safetensors" in ran.err
    assert str(good) not in ran.err


@pytest.mark.parametrize("name", ["format", "checksum", "fingerprint"])
def test_metadata_that_airchoir_writes_itself_cannot_be_set(run: Any, arrays: Path, name: str) -> None:
    refused = run("bank", "import", *PLAIN.split(), "--out", "bank", "--meta", f"{name}=7")
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert not (arrays / "bank").exists()


def test_an_import_never_overwrites_what_it_is_made_of(run: Any, arrays: Path) -> None:
    before = (arrays / "test_scores.npy").read_bytes()
    refused = run("bank", "import", *PLAIN.split(), "--out", "test_scores.npy")
    assert (refused.status, refused.out) == (2, "")
    assert (arrays / "test_scores.npy").read_bytes() == before


def test_a_flipped_bit_in_a_trained_bank_is_found(run: Any, folder: Path, digits_bank: Any) -> None:
    digits_bank(0).save(folder / "bank")
    assert run("bank", "check", "bank").status == 0
    content = bytearray((folder / "bank").read_bytes())
    content[-2000] ^= 1
    (folder / "bank").write_bytes(content)
    refused = run("bank", "check", "bank")
    assert (refused.status, refused.out) == (2, "")
    assert "checksum" in refused.err
