"""A client's text classifier: a tiny transformers model made here goes through the same functions as the real ones."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training text classifiers needs airchoir[train]; run make test-all")
transformers = pytest.importorskip("transformers", reason="needs airchoir[train]; run make test-all")

from safetensors.torch import load_file, save_file

from airchoir.tasks import Data
from airchoir.tasks.recipes import TextRecipe
from airchoir.training.fitter import Epoch, Fitter, fitter
from airchoir.training.language import text_model
from airchoir.training.texts import linear
from airchoir.training.tokens import tokenise

GOOD, BAD = ["good", "great", "fine"], ["bad", "awful", "dull"]
OTHER = ["the", "film", "was", "and", "a", "very", "long", "short"]
WORDS = [*GOOD, *BAD, *OTHER]
TRAINING, VALIDATING, TESTING = 120, 20, 40
VALIDATION, SHARD = np.arange(TRAINING, TRAINING + VALIDATING), np.arange(TRAINING)


def nothing(epoch: Epoch) -> None:
    """Reports to nobody."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformers directory: a BERT of two narrow layers, with random weights, and a tokeniser of few words."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(vocab={word: i for i, word in enumerate(vocabulary)}).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=96,
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data() -> Data:
    """Reviews of 3 to 150 words, a few of which tell whether the film was liked."""
    rng = np.random.default_rng(0)

    def split(size: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, 2, size)
        texts = np.empty(size, dtype=object)
        for i, label in enumerate(labels):
            telling = rng.choice(GOOD if label else BAD, 3)
            texts[i] = " ".join([*telling, *rng.choice(OTHER, rng.integers(0, 148 if i % 10 == 0 else 12))])
        return texts, labels

    return Data(*split(TRAINING + VALIDATING), *split(TESTING), classes=2)


@pytest.fixture(scope="module")
def recipe(directory: Path) -> TextRecipe:
    return TextRecipe(f"transformers:{directory}", epochs=3, learning_rate=3e-3, max_tokens=96)


def fits(recipe: TextRecipe, data: Data) -> Fitter:
    return fitter(recipe, data, VALIDATION, device="cpu")


@pytest.mark.parametrize("loss", ["plain", "published"])
def test_a_client_learns_its_reviews(recipe: TextRecipe, data: Data, loss: str) -> None:
    test, validation = fits(replace(recipe, loss=loss, epochs=12), data).fit(SHARD, seed=1, report=nothing)
    assert np.mean(test.argmax(axis=1) == data.test_labels) > 0.9
    assert np.mean(validation.argmax(axis=1) == data.train_labels[VALIDATION]) > 0.9
    for scores, size in ((test, TESTING), (validation, VALIDATING)):
        assert scores.shape == (size, 2)
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores.sum(axis=1), 1.0, atol=1e-6)


def test_a_client_is_the_same_to_the_bit_whoever_was_fitted_before(recipe: TextRecipe, data: Data) -> None:
    short = replace(recipe, epochs=1)
    one = fits(short, data)
    first = one.fit(SHARD[:50], seed=1, report=nothing)
    one.fit(SHARD[50:], seed=2, report=nothing)
    for again in (one, fits(short, data)):
        for index, scores in enumerate(again.fit(SHARD[:50], seed=1, report=nothing)):
            np.testing.assert_array_equal(scores, first[index])


def test_a_class_the_client_has_never_seen_still_has_its_score(recipe: TextRecipe, data: Data) -> None:
    liked = np.flatnonzero(data.train_labels[:TRAINING] == 1)
    test, _ = fits(replace(recipe, epochs=1), data).fit(liked, seed=1, report=nothing)
    assert test.shape == (TESTING, 2)
    assert (test[:, 0] > 0.0).all()


def test_progress_and_provenance(recipe: TextRecipe, data: Data) -> None:
    seen: list[Epoch] = []
    one = fits(recipe, data)
    one.fit(SHARD, seed=1, report=seen.append)
    assert [(each.epoch, each.epochs) for each in seen] == [(1, 3), (2, 3), (3, 3)]
    assert seen[-1].loss < seen[0].loss
    told = one.provenance()
    assert (told["model"], told["weights"]) == ("transformers:tiny", "tiny"), "where the directory lay stays private"
    assert told["data_sha256"] == data.fingerprint
    assert len(told["weights_sha256"]) == 64


def test_training_is_the_methods_recipe_step_by_step(
    directory: Path, data: Data, recipe: TextRecipe, tmp_path: Path
) -> None:
    published = TextRecipe()
    assert (published.epochs, published.batch, published.learning_rate, published.clip) == (3, 16, 5e-5, 1.0)
    assert (published.model, published.max_tokens) == ("transformers:distilbert-base-uncased", 512)
    still = tmp_path / "still"
    shutil.copytree(directory, still)
    config = transformers.AutoConfig.from_pretrained(still)
    config.attention_probs_dropout_prob = config.hidden_dropout_prob = 0.0
    config.save_pretrained(still)
    without_dropout = replace(recipe, model=f"transformers:{still}", epochs=2, learning_rate=1e-3)
    ours, _ = fits(without_dropout, data).fit(SHARD[:40], seed=9, report=nothing)
    np.testing.assert_allclose(ours, literal(still, data, SHARD[:40], seed=9), rtol=2e-3, atol=1e-5)


def literal(directory: Path, data: Data, shard: np.ndarray, *, seed: int) -> np.ndarray:
    """The recipe as METHOD.md says it, by transformers' own schedule, one text after the other when asked."""
    order, initial, _ = np.random.SeedSequence(seed).spawn(3)
    torch.manual_seed(int(initial.generate_state(1, np.uint64)[0]))
    model = text_model(f"transformers:{directory}", "pretrained", classes=2).draw()
    tokeniser = transformers.AutoTokenizer.from_pretrained(directory)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    steps = 2 * -(-len(shard) // 16)
    schedule = transformers.get_linear_schedule_with_warmup(optimiser, 0, steps)
    rng = np.random.default_rng(order)

    def read(texts: list[str]) -> dict[str, torch.Tensor]:
        return tokeniser(texts, truncation=True, max_length=96, padding=True, return_tensors="pt")

    model.train()
    for _ in range(2):
        mixed = shard[rng.permutation(len(shard))]
        for start in range(0, len(mixed), 16):
            chosen = mixed[start : start + 16]
            logits = model(**read(list(data.train_inputs[chosen]))).logits
            loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(data.train_labels[chosen]))
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        return torch.cat([model(**read([text])).logits.softmax(dim=1) for text in data.test_inputs]).numpy()


def test_the_learning_rate_falls_linearly_from_the_first_step_without_warm_up() -> None:
    assert [linear(5e-5, step, 10) for step in (0, 5, 9)] == pytest.approx([5e-5, 2.5e-5, 5e-6])


# --- tokens


def test_batches_hold_the_tokenisers_own_tokens_truncated_and_padded(directory: Path) -> None:
    tokeniser = transformers.AutoTokenizer.from_pretrained(directory)
    texts = np.array(["good", "the film " * 100, "", "very bad film"], dtype=object)
    tokens = tokenise(texts, tokeniser, longest=80, pad=0, device=torch.device("cpu"))
    for chosen in ([0, 3], [1, 2], [3, 1, 0]):
        batch = tokens.batch(np.array(chosen))
        width = batch["input_ids"].shape[1]
        assert width == (64 if 1 not in chosen else 80), "a multiple of 64, but never more than the longest"
        for row, text in enumerate(texts[chosen]):
            wanted = tokeniser(text, truncation=True, max_length=80)["input_ids"]
            assert batch["input_ids"][row].tolist() == wanted + [0] * (width - len(wanted))
            assert batch["attention_mask"][row].tolist() == [1] * len(wanted) + [0] * (width - len(wanted))


def test_batches_by_length_hold_every_text_once_and_no_more_tokens_than_allowed(directory: Path) -> None:
    tokeniser = transformers.AutoTokenizer.from_pretrained(directory)
    rng = np.random.default_rng(0)
    texts = np.array(["good " * int(length) for length in rng.integers(0, 300, 50)], dtype=object)
    tokens = tokenise(texts, tokeniser, longest=256, pad=0, device=torch.device("cpu"))
    examples = rng.permutation(50)[:40]
    places = tokens.by_length(examples, 1024)
    np.testing.assert_array_equal(np.sort(np.concatenate(places)), np.arange(40))
    assert all(tokens.batch(examples[place])["input_ids"].numel() <= 1024 for place in places)


# --- models by name


def test_the_head_is_new_and_everything_else_given(directory: Path) -> None:
    source = text_model(f"transformers:{directory}", "pretrained", classes=5)
    torch.manual_seed(1)
    one, other = source.draw().state_dict(), source.draw().state_dict()
    for name, tensor in load_file(directory / "model.safetensors").items():
        assert torch.equal(one[f"bert.{name}"], tensor)
    assert one["classifier.weight"].shape == (5, 32)
    assert not torch.equal(one["classifier.weight"], other["classifier.weight"])


def test_weights_from_a_file_with_or_without_the_models_prefix(directory: Path, tmp_path: Path) -> None:
    bare = load_file(directory / "model.safetensors")
    save_file({f"bert.{name}": tensor for name, tensor in bare.items()}, tmp_path / "prefixed.safetensors")
    sources = [
        text_model(f"transformers:{directory}", weights, classes=2)
        for weights in ("pretrained", str(directory / "model.safetensors"), str(tmp_path / "prefixed.safetensors"))
    ]
    assert len({source.fingerprint for source in sources}) == 1
    none = text_model(f"transformers:{directory}", "none", classes=2)
    assert (none.fingerprint, none.source) == ("none", "none")


def spoil(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {**state, "embeddings.word_embeddings.weight": torch.zeros(3, 32)}


def rob(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in state.items() if name != "pooler.dense.weight"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (spoil, r"bert\.embeddings\.word_embeddings\.weight has shape \(3, 32\), the model wants \(19, 32\)"),
        (rob, r"they lack bert\.pooler\.dense\.weight"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name_and_shape(
    directory: Path,
    tmp_path: Path,
    change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]],
    complaint: str,
) -> None:
    save_file(change(load_file(directory / "model.safetensors")), tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match=rf"\Aweights [^\n]* do not fit transformers:[^\n]*{complaint}[^\n]*\Z"):
        text_model(f"transformers:{directory}", str(tmp_path / "w.safetensors"), classes=2)


@pytest.mark.parametrize(
    ("model", "weights", "complaint"),
    [
        ("distilbert-base-uncased", "pretrained", "transformers: and a hub name or a directory, got 'distilbert"),
        ("timm:resnet18", "pretrained", "transformers: and a hub name or a directory"),
        ("transformers:/no/such/folder", "pretrained", "cannot get transformers:/no/such/folder .*go online, or give"),
    ],
)
def test_models_that_are_not_there_are_refused_in_one_line(model: str, weights: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=rf"\A[^\n]*{complaint}[^\n]*\Z"):
        text_model(model, weights, classes=2)


def test_imagenet_weights_are_none_of_a_text_models(directory: Path) -> None:
    with pytest.raises(ValueError, match=r"weights must be pretrained, none or a \.safetensors file, got 'imagenet'"):
        text_model(f"transformers:{directory}", "imagenet", classes=2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_a_client_learns_too(recipe: TextRecipe, data: Data) -> None:
    test, _ = fitter(replace(recipe, epochs=12), data, VALIDATION, device="cuda").fit(SHARD, seed=1, report=nothing)
    assert np.mean(test.argmax(axis=1) == data.test_labels) > 0.9
