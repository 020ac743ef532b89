"""The Python side of the benchmarks: one JSON object a line in, one out, until the input ends.

Arrays come as files of raw little-endian float64 numbers, row by row. Threads are limited by the environment before
this process starts (OMP_NUM_THREADS and its kin). Times are of the peer's own work alone: arrays are in memory before.
"""

import json
import sys
import time

import numpy as np
import pandas as pd
import sklearn
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

arrays = {}


def array(task, name):
    """The array of that name, read once."""
    path, shape = task[name]["path"], task[name]["shape"]
    if path not in arrays:
        arrays[path] = np.fromfile(path, dtype="<f8").reshape(shape)
    return arrays[path]


def versions(_):
    return {"python": sys.version.split()[0], "numpy": np.__version__, "scikit-learn": sklearn.__version__,
            "pandas": pd.__version__}


def rbf(task):
    """Fastest of the calls that begin within the given seconds; with `out`, the values as a file."""
    x, z, gamma = array(task, "x"), array(task, "z"), task["gamma"]
    best, begun = float("inf"), time.perf_counter()
    while time.perf_counter() - begun < task["seconds"]:
        start = time.perf_counter()
        values = rbf_kernel(x, z, gamma=gamma)
        best = min(best, time.perf_counter() - start)
    if "out" in task:
        values.astype("<f8").tofile(task["out"])
    return {"seconds": best}


def nystroem_ridge(task):
    """Nystroem on exactly the given centres, then Ridge; the error on the test rows is not timed."""
    x, y, z = array(task, "x"), array(task, "y"), array(task, "z")
    start = time.perf_counter()
    # All centres are components: n_components = len(z) makes the draw a permutation.
    mapping = Nystroem(gamma=task["gamma"], n_components=len(z), random_state=0).fit(z)
    model = Ridge(alpha=task["alpha"]).fit(mapping.transform(x), y)
    seconds = time.perf_counter() - start
    errors = model.predict(mapping.transform(array(task, "x_test"))) - array(task, "y_test")
    return {"seconds": seconds, "rmse": float(np.sqrt(np.mean(errors**2)))}


def bless(task):
    """Atoms chosen by BLESS."""
    # Only this task needs DPPy, whose import is slow.
    from bless import choose

    return choose(array(task, "x"), task["bandwidth"], task["atoms"], task["seed"])


def read_csv(task):
    # pandas 3.1 reads files above 5 MB on every core unless told otherwise; ours reads on one thread.
    pd.set_option("mode.max_threads", 1)
    start = time.perf_counter()
    table = pd.read_csv(task["path"], engine="c")
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "rows": len(table), "columns": table.shape[1], "sum": float(table.to_numpy().sum())}


TASKS = {task.__name__: task for task in (versions, rbf, nystroem_ridge, bless, read_csv)}


def main():
    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer = TASKS[task["task"]](task)
        except Exception as error:  # told to the other side, which decides
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
