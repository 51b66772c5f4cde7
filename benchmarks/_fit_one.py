"""Fit one model of one package on one data set, in a process of its own; print a line of JSON.

It is run by the scripts of this folder, also by interpreters that have a peer and not bagwise, some
of them old: plain code, no dependency beyond NumPy and the package that is measured.
"""

import json
import os
import resource
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

C = 10.0


def load(name):
    with np.load(Path(os.environ["BAGWISE_DATA"]) / (name + ".npz")) as data:
        X = data["X"].astype(np.float64)
        offsets = data["offsets"].astype(np.int64)
        y = np.where(data["y"] > 0, 1, -1)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return [np.ascontiguousarray(X[a:b]) for a, b in zip(offsets[:-1], offsets[1:])], y  # noqa: B905, RUF007 (old interpreters)


#: Parameters with which a method of ours solves the peer's problem, from the same start.
ONE_START = {"n_init": 1}
OURS = {
    "MISVM": {"negative_slack": "bag", **ONE_START},
    "miSVM": ONE_START,
    "MICA": ONE_START,
    "MissSVM": ONE_START,
    "STMIL": ONE_START,
    "SIL": {"positive_cost": 1.0},
}


def fit_bagwise(method, bags, y):
    from bagwise import Bags

    together = Bags.from_list(bags)
    params = {"C": C, "gamma": 1.0 / bags[0].shape[1]}
    home = import_module("bagwise.embedding" if method == "MILES" else "bagwise.svm")
    model = getattr(home, method)(**params, **OURS.get(method, {}))

    def fit():
        model.fit(together, y)
        return model

    return fit, lambda: model.decision_function(together), lambda: model.result_.objective


def fit_misvm(method, bags, y):
    import misvm

    kernel = "rbf_av" if method == "NSK" else "rbf"
    gamma = 1.0 / bags[0].shape[1]
    model = getattr(misvm, method)(kernel=kernel, gamma=gamma, C=C, verbose=False, scale_C=False)

    def fit():
        model.fit(bags, y.astype(float))
        if model._alphas is None:
            message = "misvm returned a model that is not fitted"
            raise RuntimeError(message)
        return model

    return fit, lambda: model.predict(bags), lambda: -float(model._objective)


def fit_sawmil(method, bags, y):
    import sawmil

    kernel = sawmil.RBF(gamma=1.0 / bags[0].shape[1])
    model = getattr(sawmil, method)(
        C=C, kernel=kernel, normalizer="average", scale_C=False, solver="osqp"
    )
    together = [sawmil.Bag(X=bag, y=float(label > 0)) for bag, label in zip(bags, y)]  # noqa: B905

    def objective():
        import numpy as np

        alpha, sign = np.asarray(model.alpha_), np.asarray(model.y_)
        beta = alpha * sign
        scores = np.asarray(model.decision_function(together))
        hinge = np.maximum(1.0 - np.where(y > 0, 1.0, -1.0) * scores, 0.0)
        w2 = beta @ (scores[np.asarray(model.support_)] - model.intercept_)
        return 0.5 * float(w2) + C * float(hinge.sum())

    return lambda: model.fit(together), lambda: model.decision_function(together), objective


def fit_mil(method, bags, y):
    from mil.bag_representation.mapping import MILESMapping
    from sklearn.svm import LinearSVC

    mapping = MILESMapping(sigma2=float(bags[0].shape[1]))
    classifier = LinearSVC(C=C, class_weight="balanced", max_iter=5000)

    def fit():
        classifier.fit(mapping.fit(bags, y).transform(bags), y)
        return classifier

    return fit, lambda: classifier.decision_function(mapping.transform(bags)), lambda: None


def fit_sklearn(method, bags, y):
    from sklearn.svm import SVC

    X, labels = np.concatenate(bags), np.repeat(y, [len(bag) for bag in bags])
    model = SVC(C=C, gamma=1.0 / X.shape[1], tol=1e-6)
    return lambda: model.fit(X, labels), lambda: model.decision_function(X), lambda: None


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main(package, method, dataset, repeats):
    bags, y = load(dataset)
    small, small_y = bags[:4] + bags[-4:], np.concatenate([y[:4], y[-4:]])
    prepare = globals()["fit_" + package]
    if package == "bagwise":  # compiled code is loaded before the clock starts
        warm_fit, warm_predict, _ = prepare(method, small, small_y)
        warm_fit()
        warm_predict()
    before = peak_mb()
    fit, predict, objective = prepare(method, bags, y)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        fit()
        times.append(time.perf_counter() - start)
    after_fit = peak_mb()
    start = time.perf_counter()
    scores = np.asarray(predict()).ravel()
    predict_time = time.perf_counter() - start
    try:
        value = objective()
    except Exception:  # a peer that does not tell
        value = None
    print(
        json.dumps(
            {
                "fit": min(times),
                "predict": predict_time,
                "objective": value,
                "training_accuracy": float(np.mean((scores > 0) == (y > 0)))
                if len(scores) == len(y)
                else None,
                "peak_mb": after_fit,
                "grown_mb": after_fit - before,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 1)
