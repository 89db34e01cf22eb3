"""Imported before numpy: one thread for its matrix products, unless the user says otherwise.

Those of this library are small: on several cores they take longer, and their last digits depend on how many there are.
"""

import os
import sys

if "numpy" not in sys.modules:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
