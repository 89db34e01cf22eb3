"""How fast is airchoir? One question per file; `python -m benchmarks` answers them all, on one thread, in one table.

A question is a module with `answers(quick)`, which yields an `Answer` for every line of the table.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = "1"  # read when numpy loads, so it must be set first: here
