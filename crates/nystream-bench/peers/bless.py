"""BLESS (Rudi, Calandriello, Carratino, Rosasco, NeurIPS 2018) as DPPy has it, with about as many atoms as asked for."""

import contextlib
import sys
import time

import numpy as np
from dppy.bless import bless
from sklearn.metrics.pairwise import rbf_kernel

# DPPy suggests 2 to 10.
OVERSAMPLING = 3.0
# Halvings of the interval of log lambda, and seeds tried for a size within 5 %.
HALVINGS, TRIES = 12, 20


class Gaussian:
    """A kernel as DPPy wants it: called with one or two sets of rows, and knowing its own diagonal."""

    def __init__(self, bandwidth):
        self.gamma = 1.0 / (2.0 * bandwidth**2)

    def __call__(self, x, z=None):
        return rbf_kernel(x, z, gamma=self.gamma)

    def diag(self, x):
        return np.ones(len(x))


def choose(x, bandwidth, atoms, seed):
    """Row numbers of about `atoms` atoms, the lambda that gave them, and the seconds of that one run.

    BLESS has its size from lambda: the search for it is not timed.
    """
    kernel = Gaussian(bandwidth)

    def run(log_lambda, state):
        start = time.perf_counter()
        # Standard output belongs to the answers.
        with contextlib.redirect_stdout(sys.stderr):
            found = bless(x, kernel, float(np.exp(log_lambda)), OVERSAMPLING, random_state=state, verbose=False)
        return sorted(int(i) for i in found.idx), time.perf_counter() - start

    low, high = np.log(1e-4), np.log(len(x) / 2)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if len(run(middle, seed)[0]) > atoms:
            low = middle
        else:
            high = middle
    best = None
    for state in range(seed, seed + TRIES):
        chosen, seconds = run((low + high) / 2, state)
        if best is None or abs(len(chosen) - atoms) < abs(len(best[0]) - atoms):
            best = chosen, seconds
        if abs(len(chosen) - atoms) <= 0.05 * atoms:
            break
    return {"atoms": best[0], "lambda": float(np.exp((low + high) / 2)), "seconds": best[1]}
