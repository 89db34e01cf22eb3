"""How experiments write numbers in sentences, tables and labels."""

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, Decimal

from airchoir.experiments.choirs import Choir
from airchoir.metrics import Estimate


def share(value: float, digits: int = 1) -> str:
    """A fraction in percent.

    >>> share(0.8127)
    '81.3 %'
    """
    return f"{100.0 * value:.{digits}f} %"


def points(value: float) -> str:
    """A difference of two fractions in percentage points, signed; never "-0.00".

    >>> points(0.0034), points(1e-9)
    ('+0.34', '0.00')
    """
    return signed(100.0 * value)


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign, and none where it rounds to 0.

    >>> signed(1.5), signed(-0.001)
    ('+1.50', '0.00')
    """
    text = f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text if any(digit in "123456789" for digit in text) else text[1:]


def number(value: float, form: str = "g") -> str:
    """A number with a minus sign where it is negative.

    >>> number(-20.0), number(1.25, ".1f")
    ('\u221220', '1.2')
    """
    return format(value, form).replace("-", "\N{MINUS SIGN}")


def rounded_up(value: float, digits: int) -> str:
    """A number that must not be told too small: a price in epsilon, the noise that a promise takes, the largest error.

    >>> rounded_up(391.7495, 1), rounded_up(5.0, 2), rounded_up(math.inf, 1)
    ('391.8', '5.00', 'inf')
    """
    if not math.isfinite(value):
        return str(value)
    return str(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING))


def with_spread(value: float, spread: float) -> str:
    """A mean and its standard deviation, as a table has them.

    >>> with_spread(81.27, 0.1)
    '81.27 ± 0.10'
    """
    return f"{value:.2f} ± {spread:.2f}"


def macro_f1(estimate: Estimate) -> str:
    """Macro-F1 in percent with its standard deviation."""
    return with_spread(100.0 * estimate.macro_f1, 100.0 * estimate.macro_f1_std)


def promise(epsilon: float) -> str:
    """The promise as a label.

    >>> promise(math.inf), promise(0.5)
    ('ε = ∞', 'ε = 0.5')
    """
    return "ε = ∞" if epsilon == math.inf else f"ε = {epsilon:g}"


def under(epsilon: float) -> str:
    """The promise in a sentence.

    >>> under(math.inf), under(0.5)
    ('without privacy', 'at ε = 0.5')
    """
    return "without privacy" if epsilon == math.inf else f"at {promise(epsilon)}"


def each(choirs: Sequence[Choir], phrase: Callable[[int], str]) -> str:
    """What `phrase` says of every choir by its place, its task in brackets: "90.2 % (CIFAR-10); 88.2 % (IMDB)"."""
    return "; ".join(f"{phrase(place)} ({choir.title})" for place, choir in enumerate(choirs))


def by_task(choirs: Iterable[Choir], phrases: Iterable[str]) -> str:
    """A phrase about every choir, each behind its task: "CIFAR-10 90.2 %; IMDB 88.2 %"."""
    return "; ".join(f"{choir.title} {phrase}" for choir, phrase in zip(choirs, phrases, strict=True))


def small(value: float) -> str:
    """A number such as delta.

    >>> small(1e-6), small(0.05)
    ('1e-6', '0.05')
    """
    mantissa, exponent, power = f"{value:g}".partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa


def listing(words: Iterable[str]) -> str:
    """Words in a row.

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def ranges(values: Sequence[float], chosen: Sequence[bool]) -> str:
    """Which of the ascending values are chosen, runs of them in one go.

    >>> ranges([0.1, 0.2, 0.3, 0.4], [True, True, True, False])
    '0.1 to 0.3'
    >>> ranges([1.0, 2.0], [False, False]), ranges([1.0, 2.0, 4.0], [True, False, True])
    ('none', '1 and 4')
    """
    runs: list[list[float]] = []
    previous = False
    for value, taken in zip(values, chosen, strict=True):
        if taken and previous:
            runs[-1].append(value)
        elif taken:
            runs.append([value])
        previous = taken
    return listing(f"{run[0]:g} to {run[-1]:g}" if len(run) > 1 else f"{run[0]:g}" for run in runs) if runs else "none"
