"""Where a key is written, whatever TOML allows."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airchoir.experiments.sweep.places import Path, Places

AWKWARD = '''\
# snr_db = 1
delta = 1e-6 # rule = 2

"access" = """
[[grid]]
rule = "no"
"""   # still access
tolerance = [
  # a comment [
  1e-3, "]",

  2e-3,
]

[[grid]]
rule = "vote"
snr_db.from = 0
snr_db.to = 1

[[grid]]      # the second
  'rule' = ["vote",
            "belief"] # here
[grid.snr_db]
to = 5

[[grid]]
rule = \'\'\'
x\'\'\'
'''
PLACES: list[tuple[Path, int]] = [
    (("delta",), 2),
    (("access",), 4),
    (("tolerance",), 8),
    (("grid", 0), 15),
    (("grid", 0, "rule"), 16),
    (("grid", 0, "snr_db"), 17),
    (("grid", 0, "snr_db", "to"), 18),
    (("grid", 1), 20),
    (("grid", 1, "rule"), 21),
    (("grid", 1, "snr_db"), 23),
    (("grid", 1, "snr_db", "to"), 24),
    (("grid", 2), 26),
    (("grid", 2, "rule"), 27),
]


@pytest.mark.parametrize(("path", "line"), PLACES)
def test_a_key_is_found_on_the_line_on_which_it_is_written(path: Path, line: int) -> None:
    tomllib.loads(AWKWARD)
    assert Places(AWKWARD).line(path) == line


@pytest.mark.parametrize(
    "path", [("nothing",), ("grid", 3), ("delta", "rule"), ("delta", 0), ("grid", 0, "delta"), (0,)]
)
def test_what_is_not_there_is_on_the_first_line(path: Path) -> None:
    assert Places(AWKWARD).line(path) == 1


KEYS = st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=8, unique=True)
FILLERS = st.lists(st.sampled_from(["", "# a = 1", "   ", "\t# ["]), max_size=3)
VALUES = st.sampled_from(["1", "[\n1,\n\n2]", '"""\n[[grid]]\n"""', "'#'", "{ x = 1 }", "[ # ]\n]"])


@given(st.data(), KEYS)
def test_every_key_of_any_file_is_found(data: st.DataObject, keys: list[str]) -> None:
    lines: list[str] = []
    written = {}
    for key in keys:
        lines += data.draw(FILLERS)
        written[key] = len(lines) + 1
        lines += f"{key} = {data.draw(VALUES)}".split("\n")
    places = Places("\n".join(lines))
    assert {key: places.line((key,)) for key in keys} == written
