"""Image classifiers by name: a new last layer, the given weights everywhere else, and a refusal of those that do not fit."""

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="image classifiers need airchoir[train]; run make test-all")
torchvision = pytest.importorskip("torchvision", reason="needs airchoir[train]; run make test-all")
timm = pytest.importorskip("timm", reason="needs airchoir[train]; run make test-all")

from safetensors.torch import save_file

from airchoir.training.models import ImageModel, image_model

PAIRS = {
    "timm:test_efficientnet": "classifier",
    "timm:test_resnet": "fc",
    "timm:test_vit": "head",
    "torchvision:shufflenet_v2_x0_5": "fc",
    "torchvision:mobilenet_v3_small": "classifier.3",
    "torchvision:squeezenet1_1": "classifier.1",
}
"""Models, and what their last layers are called."""


def made_for_a_thousand(model: str) -> dict[str, torch.Tensor]:
    """The weights of a model of ImageNet's thousand classes."""
    library, _, name = model.partition(":")
    if library == "timm":
        settings = timm.get_pretrained_cfg(name)
        size = {"img_size": 64} if settings.fixed_input_size else {}
        return timm.create_model(name, num_classes=1000, **size).state_dict()
    return torchvision.models.get_model(name, weights=None).state_dict()


def model_from(model: str, weights: str) -> ImageModel:
    return image_model(model, weights, classes=7, image_size=64)


def saved(state: dict[str, torch.Tensor], path: Path) -> str:
    save_file({name: tensor.contiguous().clone() for name, tensor in state.items()}, path)
    return str(path)


@pytest.mark.parametrize(("model", "head"), PAIRS.items())
def test_all_but_the_last_layer_is_given_and_that_is_drawn_for_the_classes(
    model: str, head: str, tmp_path: Path
) -> None:
    state = made_for_a_thousand(model)
    source = model_from(model, saved(state, tmp_path / "model.safetensors"))
    torch.manual_seed(1)
    one, other = source.draw().state_dict(), source.draw().state_dict()
    for name, tensor in one.items():
        if name.startswith(f"{head}."):
            assert tensor.shape[0] == 7
            assert name.endswith("bias") or not torch.equal(tensor, other[name])
        else:
            torch.testing.assert_close(tensor, state[name], rtol=0.0, atol=0.0)
    assert source.draw()(torch.zeros(2, 3, 64, 64)).shape == (2, 7)


@pytest.mark.parametrize(("model", "head"), PAIRS.items())
def test_the_new_last_layer_is_drawn_as_torch_draws_any_new_layer(model: str, head: str, tmp_path: Path) -> None:
    """timm draws 0.3 for ten classes where torch draws 0.03: the published loss then starts where its slope is nearly flat."""
    source = model_from(model, saved(made_for_a_thousand(model), tmp_path / "model.safetensors"))
    torch.manual_seed(1)
    layer = source.draw().get_submodule(head)
    bound = 1.0 / math.sqrt(layer.weight[0].numel())  # the uniform law's, for weights and biases alike
    assert 0.9 * bound < float(layer.weight.detach().abs().max()) <= bound
    assert float(layer.bias.detach().abs().max()) <= bound
    assert float(layer.weight.detach().std()) == pytest.approx(bound / math.sqrt(3.0), rel=0.1)


def test_without_weights_everything_is_drawn_from_torchs_random_numbers() -> None:
    source = model_from("timm:test_resnet", "none")
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        states.append(source.draw().state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["layer1.0.conv1.weight"], states[2]["layer1.0.conv1.weight"])


def test_weights_of_another_shape_are_refused_by_name_and_shape(tmp_path: Path) -> None:
    state = made_for_a_thousand("timm:test_resnet")
    state["layer1.0.conv1.weight"] = torch.zeros(5, 3, 7, 7)
    weights = saved(state, tmp_path / "w.safetensors")
    message = r"\A[^\n]*layer1\.0\.conv1\.weight has shape \(5, 3, 7, 7\), the model wants \(\d+, \d+, \d, \d\)[^\n]*\Z"
    with pytest.raises(ValueError, match=message):
        model_from("timm:test_resnet", weights)


def test_weights_that_lack_a_tensor_or_have_another_are_refused_by_name(tmp_path: Path) -> None:
    state = made_for_a_thousand("timm:test_resnet")
    kept = {name: tensor for name, tensor in state.items() if name != "layer1.0.conv1.weight"}
    with pytest.raises(ValueError, match=r"do not fit timm:test_resnet: they lack layer1\.0\.conv1\.weight;"):
        model_from("timm:test_resnet", saved(kept, tmp_path / "a.safetensors"))
    with pytest.raises(ValueError, match=r"they have extra, which it has not;"):
        model_from("timm:test_resnet", saved({**state, "extra": torch.zeros(1)}, tmp_path / "b.safetensors"))
    with pytest.raises(ValueError, match=r"do not fit torchvision:mobilenet_v3_small: they lack .* more differ"):
        model_from("torchvision:mobilenet_v3_small", saved(state, tmp_path / "c.safetensors"))


def test_batch_counters_may_be_missing_as_in_old_files(tmp_path: Path) -> None:
    state = made_for_a_thousand("timm:test_resnet")
    kept = {name: tensor for name, tensor in state.items() if not name.endswith("num_batches_tracked")}
    assert len(kept) < len(state)
    model_from("timm:test_resnet", saved(kept, tmp_path / "w.safetensors")).draw()


def test_a_file_is_told_apart_by_its_backbone(tmp_path: Path) -> None:
    state = made_for_a_thousand("timm:test_resnet")
    one = model_from("timm:test_resnet", saved(state, tmp_path / "one.safetensors"))
    other_head = {**state, "fc.bias": state["fc.bias"] + 1.0}
    same = model_from("timm:test_resnet", saved(other_head, tmp_path / "same.safetensors"))
    changed = {**state, "layer1.0.conv1.weight": state["layer1.0.conv1.weight"] + 1.0}
    other = model_from("timm:test_resnet", saved(changed, tmp_path / "other.safetensors"))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert len(one.fingerprint) == 64
    assert one.source == "one.safetensors"


@pytest.mark.parametrize(
    ("model", "weights", "complaint"),
    [
        ("resnet18", "none", "torchvision:NAME or timm:NAME, got 'resnet18'"),
        ("keras:resnet18", "none", "torchvision:NAME or timm:NAME, got 'keras:resnet18'"),
        ("timm:", "none", "torchvision:NAME or timm:NAME"),
        ("timm:tf_efficientnet_lit0", "none", "did you mean 'tf_efficientnet_lite0'"),
        ("torchvision:mobilenet_v3_larg", "none", "did you mean 'mobilenet_v3_large'"),
        ("timm:test_resnet", "weights.pth", r"imagenet, none or a \.safetensors file, got 'weights.pth'"),
        ("timm:test_resnet", "/nowhere/w.safetensors", "do not exist"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(model: str, weights: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=rf"\A[^\n]*{complaint}[^\n]*\Z"):
        model_from(model, weights)


def test_a_broken_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"half a fi")
    with pytest.raises(ValueError, match=r"\Aweights [^\n]* are no whole safetensors file [^\n]*\Z"):
        model_from("timm:test_resnet", str(path))


@pytest.mark.parametrize("model", ["timm:test_resnet", "torchvision:mobilenet_v3_small"])
def test_weights_that_no_hub_gives_are_one_line_of_advice(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no route\nto the hub")

    monkeypatch.setattr(torchvision.models._api.WeightsEnum, "get_state_dict", unreachable)
    monkeypatch.setattr("timm.models._builder.load_pretrained", unreachable)
    with pytest.raises(
        ValueError, match=r"\Acannot get the weights of [^\n]*no route[^\n]*go online, or give --weights"
    ):
        model_from(model, "imagenet")


def test_normalisation_is_the_weights_own() -> None:
    normalisations = {
        name: model_from(name, "none").library.normalisation(name.partition(":")[2])
        for name in ("timm:tf_efficientnet_lite0", "torchvision:mobilenet_v3_large", "torchvision:vit_b_16")
    }
    imagenet = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert normalisations["timm:tf_efficientnet_lite0"] == ((0.5,) * 3, (0.5,) * 3)
    assert normalisations["torchvision:mobilenet_v3_large"] == imagenet
    assert normalisations["torchvision:vit_b_16"] == imagenet
