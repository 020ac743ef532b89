"""scikit-learn's Nystroem(1000) + Ridge, tuned by cross-validation, beside which our defaults are judged.

Splits each set 90/10 with a seed, writes both parts as CSV for the other contestant, chooses gamma and alpha by
3-fold cross-validation on the training part over the usual logarithmic grids, refits, and prints one JSON line a set.

usage: tuned_nystroem.py DATA_DIR OUT_DIR SEED SET [SET ...]
"""

import json
import os
import sys
import time

import numpy as np
import pandas as pd
from scipy import linalg
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

GAMMAS = np.logspace(-3, 0, 7)
ALPHAS = np.logspace(-4, 1, 6)


def split(data_dir, out_dir, name, seed):
    table = pd.read_csv(os.path.join(data_dir, name + ".csv.gz"))
    order = np.random.RandomState(seed).permutation(len(table))
    cut = len(table) // 10
    parts = {"test": table.iloc[order[:cut]], "train": table.iloc[order[cut:]]}
    for part, rows in parts.items():
        rows.to_csv(os.path.join(out_dir, f"{name}.{part}.csv"), index=False)
    return parts


def features(gamma, seed):
    return make_pipeline(StandardScaler(), Nystroem(gamma=gamma, n_components=1000, random_state=seed))


def cross_validate(x, y, gamma, seed):
    """Squared error of each alpha, summed over the folds.

    The features and their Gram matrix do not depend on alpha, so they are computed once a fold; each alpha is
    then what Ridge(alpha, fit_intercept=True, solver="cholesky") does.
    """
    errors = np.zeros(len(ALPHAS))
    for train, valid in KFold(3, shuffle=True, random_state=seed).split(x):
        mapping = features(gamma, seed)
        phi, phi_valid = mapping.fit_transform(x[train]), mapping.transform(x[valid])
        mean_phi, mean_y = phi.mean(axis=0), y[train].mean()
        phi -= mean_phi
        gram, cross = phi.T @ phi, phi.T @ (y[train] - mean_y)
        for i, alpha in enumerate(ALPHAS):
            theta = linalg.solve(gram + alpha * np.eye(len(gram)), cross, assume_a="pos")
            errors[i] += np.sum(((phi_valid - mean_phi) @ theta + mean_y - y[valid]) ** 2)
    return errors


def main():
    data_dir, out_dir, seed, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    os.makedirs(out_dir, exist_ok=True)
    parts = {name: split(data_dir, out_dir, name, seed) for name in names}
    for name in names:
        train, test = parts[name]["train"], parts[name]["test"]
        x, y = train.drop(columns="target").to_numpy(float), train["target"].to_numpy(float)
        xt, yt = test.drop(columns="target").to_numpy(float), test["target"].to_numpy(float)
        start = time.perf_counter()
        errors = np.array([cross_validate(x, y, gamma, seed) for gamma in GAMMAS])
        best_gamma, best_alpha = np.unravel_index(np.argmin(errors), errors.shape)
        gamma, alpha = GAMMAS[best_gamma], ALPHAS[best_alpha]
        model = make_pipeline(features(gamma, seed), Ridge(alpha=alpha, solver="cholesky")).fit(x, y)
        seconds = time.perf_counter() - start
        rmse = float(np.sqrt(np.mean((model.predict(xt) - yt) ** 2)))
        row = {"set": name, "rows": len(train), "rmse": rmse, "gamma": gamma, "alpha": alpha, "seconds": seconds}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
