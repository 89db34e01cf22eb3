"""What is left of a promise when clients are lost, or collude with the server, and nobody planned for it."""

import math

from airchoir.participation import Participation
from airchoir.privacy import check_lost


def remaining_sigma(sigma: float, participation: Participation, lost: int) -> float:
    """The aggregate noise left, rounded down: sigma sqrt((n - d) / n) where all n clients share it in every round.

    `participation` is the law of P_t as planned. Over the air at p < 1 the clients of P_t share sigma, so what d losses leave
    depends on |P_t|, and a colluder who tells |P_t| voids the amplification: there is no one number, and none is given.

    >>> round(remaining_sigma(5.974598181957, Participation(20, 1.0), 10), 9)
    4.224678889
    """
    check_lost(lost, participation.clients)
    if lost > 0 and participation.at_least > 0 and not participation.certain:
        raise ValueError(
            f"lost = {lost} at participation {participation.probability:g} has no answer over the air: what is left depends "
            f"on |P_t|, which a colluder may tell; plan for losses with `privacy sigma --lost`, or use always-on"
        )
    if lost == 0:
        return sigma
    return math.nextafter(sigma * math.sqrt((participation.clients - lost) / participation.clients), 0.0)
