"""What does `import airchoir` cost, and touching `airchoir.evaluate`, in a fresh process?

Rival: `import numpy`. Wanted: below 0.3 s. CPU time, so a busy machine or a cold disk does not count.
"""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.answer import Answer, Sample

STATEMENTS = {"numpy": "import numpy", "airchoir": "import airchoir", "evaluate": "import airchoir; airchoir.evaluate"}


def answers(quick: bool) -> Iterator[Answer]:
    rounds = [{name: seconds(code) for name, code in STATEMENTS.items()} for _ in range(2 if quick else 5)]
    numpy, airchoir, touched = (Sample(tuple(r[name] for r in rounds), "s") for name in STATEMENTS)
    yield Answer("import airchoir, beside import numpy", airchoir, numpy, limit=0.3)
    yield Answer("import airchoir; airchoir.evaluate, beside import numpy", touched, numpy, limit=0.3)


def seconds(statement: str) -> float:
    """The CPU time a statement takes as the first of a fresh process."""
    code = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
