"""Which of table 1's methods a choir can use."""

from collections.abc import Callable

from airchoir import ScoreBank
from airchoir.experiments.choirs import Choir
from airchoir.experiments.methods import BEST, METHODS, common_methods, methods_of, style_of, without_best_client

MakeBank = Callable[..., ScoreBank]


def test_a_best_client_takes_validation_scores_in_every_bank(make_bank: MakeBank) -> None:
    judged, bare = make_bank(), make_bank(seed=1)
    bare = ScoreBank(bare.test_scores, bare.test_labels)
    every, some = Choir("all", (), (judged, judged)), Choir("some", (), (judged, bare))
    assert methods_of(every) == tuple(METHODS)
    assert set(METHODS) - set(methods_of(some)) == {BEST}
    assert common_methods([every]) == tuple(METHODS)
    assert common_methods([every, some]) == methods_of(some)
    (note,) = without_best_client([every, some])
    assert note.startswith("some: no best client")


def test_every_method_has_a_style_of_its_own() -> None:
    assert sorted(map(style_of, METHODS)) == list(range(len(METHODS)))
