"""The axis words and array aliases of the whole library.

Axis order is always ``repeats clients queries classes``; an access adds ``slots`` where the receiver listens.
"""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

Scores = Annotated[NDArray[np.floating], "clients queries classes"]
Symbols = Annotated[Float, "clients queries classes"]
Received = Annotated[Float, "slots queries classes"]
Sums = Annotated[Float, "queries classes"]
Probabilities = Annotated[NDArray[np.floating], "queries classes"]
Present = Annotated[NDArray[np.bool_], "clients queries"]
Labels = Annotated[NDArray[np.int64], "queries"]
PerQuery = Annotated[Float, "queries"]
PerClass = Annotated[Float, "classes"]
PerClient = Annotated[Float, "clients"]
PerSlot = Annotated[Float, "slots"]
PerSize = Annotated[Float, "sizes"]
Indices = NDArray[np.intp]
