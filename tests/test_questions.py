"""Questions: rows that a model could tell apart never share noise, equal rows always do, and the ledger counts each once."""

import datetime
import math
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from scipy import sparse

from airchoir import BudgetExceeded, Participation
from airchoir.privacy.ledger import Mechanism
from airchoir.questions import AnswerLedger, Secret, container, generator, row_bytes
from airchoir.rules import SIMPLEX

SECRET = Secret(bytes(range(32)))
EVERYONE = Participation(20, 1.0)
dtypes = st.sampled_from(["?", "i1", "i8", "u4", "f2", "f4", "f8", ">f8", "M8[s]", "c16"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals()
    | st.dates()
    | st.integers(-5, 5).map(np.int64)
    | st.integers(-5, 5).map(np.float64)
)
cells = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner)
)


def asked(X: Any, secret: Secret = SECRET) -> list[bytes]:
    return secret.questions(container(X))


def objects(values: list[Any]) -> np.ndarray:
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = values
    return column


def typed(value: Any) -> Any:
    """A value that equals another only if type and content do, deep down; floats by their bits."""
    if isinstance(value, list | tuple):
        return type(value), tuple(map(typed, value))
    if isinstance(value, dict):
        return dict, tuple((typed(key), typed(item)) for key, item in value.items())
    if isinstance(value, float):
        return type(value), np.float64(value).tobytes()
    return type(value), repr(value)


@settings(deadline=None, derandomize=True)
@given(st.data(), dtypes, st.integers(1, 6), st.integers(1, 3))
def test_numbers_are_the_same_question_exactly_when_their_bytes_are(
    data: st.DataObject, dtype: str, rows: int, width: int
) -> None:
    X = data.draw(st_numpy.arrays(dtype, (rows, width)))
    found = asked(X)
    for a in range(rows):
        for b in range(rows):
            assert (found[a] == found[b]) == (X[a].tobytes() == X[b].tobytes())


@settings(deadline=None, derandomize=True)
@given(st.lists(cells, min_size=2, max_size=5))
def test_cells_are_the_same_question_exactly_when_type_and_value_are(values: list[Any]) -> None:
    found = asked(objects(values))
    for a, first in enumerate(values):
        for b, second in enumerate(values):
            assert (found[a] == found[b]) == (typed(first) == typed(second))


@settings(deadline=None, derandomize=True)
@given(st.lists(st.text(), min_size=1, max_size=6))
def test_texts_are_the_same_question_in_whatever_batch_they_come(texts: list[str]) -> None:
    together = asked(objects(texts))
    assert together == [asked(objects([text]))[0] for text in texts]
    assert len(set(together)) == len(set(texts))


def test_a_list_of_texts_and_an_array_of_any_width_ask_the_same() -> None:
    assert asked(["a", "longer"])[0] == asked(["a"])[0] == asked(np.array(["a"], dtype="U9"))[0]


ONE_ROW_IN_MANY_FORMS = [
    np.array([[1.0, 0.0]]),
    np.array([[1.0, -0.0]]),
    np.array([[1.0, 0.0]], dtype="f4"),
    np.array([[1, 0]]),
    np.array([[True, False]]),
    np.array([[[1.0], [0.0]]]),
    np.array([[1.0, 0.0]], dtype=object),
    np.array([["1.0", "0.0"]]),
    np.array([["1.00.0"]]),
    sparse.csr_array([[1.0, 0.0]]),
    sparse.csr_array(np.array([[1.0, 0.0]], dtype="f4")),
    sparse.csr_array([[1.0, 0.0, 0.0]]),
]


def test_whatever_a_model_could_tell_apart_is_another_question() -> None:
    """float32 arithmetic answers a little differently: two answers under one noise would tell that little without noise."""
    found = [asked(X)[0] for X in ONE_ROW_IN_MANY_FORMS]
    assert len(set(found)) == len(found)


def test_integers_that_no_float_tells_apart_are_different_questions() -> None:
    big = 2**53
    assert len(set(asked(np.array([[big], [big + 1]])))) == 2
    assert len(set(asked(objects([big, big + 1, 2**200, 2**200 + 1])))) == 4


def test_a_row_of_a_list_is_the_same_question_whatever_else_is_in_the_list() -> None:
    assert asked([[1, 2]])[0] == asked([[1, 2], [0.5, 2.0]])[0] == asked([[True, 2.0]])[0]
    assert asked([[2**60]])[0] != asked([[2**60 + 1]])[0]
    assert asked([[-(2**63)]])[0] != asked([[-(2**63) + 1]])[0]


def test_a_sparse_row_is_the_same_question_however_it_is_stored() -> None:
    dense = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    forms: list[Any] = [
        sparse.csr_array(dense),
        sparse.csc_matrix(dense),
        sparse.coo_array(dense),
        sparse.lil_matrix(dense),
    ]
    forms.append(
        sparse.csr_array((np.array([1.0, 0.0, 1.5, 0.5]), np.array([3, 0, 1, 1]), np.array([0, 4, 4])), shape=(2, 4))
    )
    assert len({tuple(asked(form)) for form in forms}) == 1
    assert forms[-1].nnz == 4, "the caller's matrix is left as it was"


def test_a_cell_without_bytes_is_refused_in_one_line() -> None:
    with pytest.raises(TypeError, match=r"a cell holds a lock, .* give numbers or text$"):
        asked(objects([threading.Lock()]))


def test_dates_and_arrays_in_cells_have_bytes() -> None:
    values = [
        datetime.date(2024, 1, 1),
        datetime.date(2024, 1, 2),
        np.zeros(2),
        np.zeros((2, 1)),
        np.zeros(2, dtype="f4"),
    ]
    assert len(set(asked(objects(values)))) == 5


# --- frames


def test_rows_of_pandas_frames_count_names_dtypes_and_categories() -> None:
    pd = pytest.importorskip("pandas", reason="frames need pandas; run make test")
    frame = pd.DataFrame({"a": [1.0, 1.0, 2.0], "b": ["x", "x", None], "c": pd.Categorical(["u", "u", "v"])})
    first, second, third = asked(frame)
    assert first == second != third
    assert asked(frame.iloc[[2, 0]]) == [third, first], "the index is not part of the question"
    wider = frame.assign(c=pd.Categorical(["u", "u", "v"], categories=["t", "u", "v"]))
    others = [frame.rename(columns={"a": "A"}), frame.astype({"a": "f4"}), frame[["b", "a", "c"]], wider]
    assert len({first, *(asked(other)[0] for other in others)}) == 5
    assert asked(frame["b"])[0] == asked(frame["b"])[1]


def test_rows_of_polars_frames_tell_null_from_nan() -> None:
    pl = pytest.importorskip("polars", reason="frames need polars; run make test")
    frame = pl.DataFrame({"a": [1.0, 1.0, None, math.nan], "b": [1, 1, 1, 1], "c": ["x", "x", "x", "x"]})
    found = asked(frame)
    assert found[0] == found[1]
    assert len(set(found)) == 3
    for start in range(4):
        assert asked(frame[start:]) == found[start:], "what else is in the batch does not matter"
        assert asked(frame[: start + 1]) == found[: start + 1]
    assert asked(pl.DataFrame({"a": [0.0]}))[0] != asked(pl.DataFrame({"a": [None]}, schema={"a": pl.Float64}))[0]


def test_polars_columns_of_every_type_have_bytes() -> None:
    pl = pytest.importorskip("polars", reason="frames need polars; run make test")
    types = [pl.Categorical, pl.Enum(["u", "v"]), pl.String, pl.Boolean, pl.Date, pl.Int8, pl.Float32, pl.List(pl.Int8)]
    values: list[list[Any]] = [["u", "v"]] * 3 + [
        [True, False],
        [datetime.date(2024, 1, 1), None],
        [1, 2],
        [1, 2],
        [[1], [1, 2]],
    ]
    for kind, pair in zip(types, values, strict=True):
        column = pl.DataFrame({"a": pl.Series(pair, dtype=kind)})
        first, second = asked(column)
        assert first != second
        assert asked(column[1:]) == [second]


# --- keys


@settings(deadline=None, derandomize=True)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_another_secret_keys_other_noise(one: bytes, other: bytes) -> None:
    X = np.arange(6.0).reshape(3, 2)
    assert (asked(X, Secret(one)) == asked(X, Secret(other))) == (one == other)
    assert not set(asked(X, Secret(one))) & set(asked(X[:, ::-1], Secret(one)))


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 255), st.integers(0, 31))
def test_every_bit_of_a_digest_counts_in_its_generator(byte: int, place: int) -> None:
    digest = bytes(range(32))
    other = digest[:place] + bytes([byte]) + digest[place + 1 :]
    same = np.array_equal(generator(digest).random(4), generator(other).random(4))
    assert same == (digest == other)


def test_noise_of_neighbouring_rows_is_uncorrelated() -> None:
    X = np.arange(4000.0)[:, None]
    drawn = np.array([generator(question).standard_normal(2) for question in asked(X)])
    pairs = [drawn[1:, 0] * drawn[:-1, 0], drawn[:, 0] * drawn[:, 1], drawn[:, 0], drawn[:, 0] ** 2 - 1.0]
    for values in pairs:
        assert abs(values.mean()) < 4.0 * values.std() / math.sqrt(len(values))


def test_the_operating_system_draws_unless_a_seed_is_given() -> None:
    assert Secret.draw(None) != Secret.draw(None)
    assert Secret.draw(0) == Secret.draw(np.int64(0)) != Secret.draw(1)
    assert Secret.draw(np.random.RandomState(3)) == Secret.draw(np.random.RandomState(3))
    with pytest.raises(ValueError, match="random_state must be None, an integer or a numpy RandomState, got 'x'"):
        Secret.draw("x")  # type: ignore[arg-type]


def test_what_is_drawn_once_says_nothing_of_the_noise() -> None:
    once = SECRET.rng("fit").random(8)
    assert not np.isin(once, [generator(q).random(8) for q in asked(np.arange(9.0)[:, None])]).any()
    assert not np.array_equal(once, SECRET.rng("other").random(8))


def test_a_single_number_is_no_list_of_rows() -> None:
    with pytest.raises(ValueError, match="one row per sample, got a single float64"):
        row_bytes(container(3.0))


# --- the ledger


def ledger(max_queries: int | None = None, sigma: float = 6.0) -> AnswerLedger:
    return AnswerLedger(Mechanism("paper", SIMPLEX, EVERYONE, sigma), delta=1e-6, max_queries=max_queries)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.lists(st.binary(max_size=1), max_size=6), max_size=6), st.integers(0, 8))
def test_the_ledger_counts_distinct_questions_and_refuses_a_call_whole(calls: list[list[bytes]], most: int) -> None:
    book, answered = ledger(most), set[bytes]()
    for call in calls:
        if len(answered | set(call)) > most:
            with pytest.raises(BudgetExceeded, match=f"max_queries={most}, {len(answered)} are answered"):
                book.charge(call)
        else:
            book.charge(call)
            answered |= set(call)
        assert book.queries == len(answered)


def test_what_is_spent_is_the_mechanisms_own_composition() -> None:
    book = ledger()
    assert book.spent().epsilon == 0.0
    book.charge([b"a", b"b", b"a"])
    assert book.spent().queries == 2
    assert book.spent().epsilon == book.mechanism.epsilon(1e-6, queries=2)
    assert ledger(sigma=0.0).spent().epsilon == 0.0
    unprotected = ledger(sigma=0.0)
    unprotected.charge([b"a"])
    assert unprotected.spent().epsilon == math.inf


def test_threads_share_a_ledger_without_losing_or_overspending() -> None:
    book = ledger(max_queries=500)
    refused = []

    def ask(start: int) -> None:
        for number in range(start, start + 200):
            try:
                book.charge([str(number).encode()])
            except BudgetExceeded:
                refused.append(number)

    threads = [threading.Thread(target=ask, args=(start,)) for start in (0, 100, 200, 300, 400, 500)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert book.queries == 500
    assert len(set(refused)) == 200


def test_a_pickled_ledger_counts_on_from_there_and_holds_no_question() -> None:
    book = ledger(max_queries=2)
    book.charge([b"a question of thirty-two bytes..."])
    content = pickle.dumps(book)
    assert b"a question" not in content
    copy = pickle.loads(content)
    copy.charge([b"a question of thirty-two bytes...", b"b"])
    assert (copy.queries, book.queries) == (2, 1)
    with pytest.raises(BudgetExceeded):
        copy.charge([b"c"])


def test_reading_without_noise_is_marked_once_and_for_all() -> None:
    book = ledger()
    assert not book.spent().read_without_noise
    assert book.mark_read_without_noise()
    assert not book.mark_read_without_noise()
    assert book.spent().read_without_noise


@pytest.mark.parametrize("most", [-1, 1.5, "3"])
def test_a_limit_is_a_whole_number(most: Any) -> None:
    with pytest.raises(ValueError, match="max_queries must be None or a whole number >= 0"):
        ledger(most)
