"""Fits of a clusterer with many parameters, from the same starts."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from numbers import Real
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from bagwise._arrays import Floats, Integers
from bagwise._threads import ordered_map
from bagwise.model_selection._shared_search import hashable

Candidate = Mapping[str, Any]


class Run(NamedTuple):
    """What came of one start.

    Parameters
    ----------
    labels : ndarray of int of shape (n_bags,)
        Clusters of the bags.
    n_clusters : int
        Number of clusters, empty ones included.
    objective : float
        The objective.
    seconds : float
        How long it took.
    """

    labels: NDArray[np.int32]
    n_clusters: int
    objective: float
    seconds: float

    @property
    def n_empty(self) -> int:
        """Number of clusters without bags."""
        return self.n_clusters - len(np.unique(self.labels))

    @property
    def smallest(self) -> float:
        """Size of the smallest cluster, in units of the mean one."""
        counts = np.bincount(self.labels, minlength=self.n_clusters)
        return float(counts.min() * self.n_clusters / counts.sum())


class Chains:
    """The order of the fits: along C from below, each from where the last one ended.

    Parameters
    ----------
    estimator : estimator
        The clusterer, or a pipeline that ends with one.
    candidates : sequence of dict
        Parameters to try.
    seeds : ndarray of int of shape (n_runs,)
        Random states of the starts.
    warm_start : bool
        Whether to begin where the last fit ended; else every fit has the start of its seed.
    """

    def __init__(
        self, estimator: Any, candidates: Sequence[Candidate], seeds: Integers, *, warm_start: bool
    ) -> None:
        self.estimator, self.candidates, self.seeds = estimator, candidates, seeds
        self.prefix = prefix_of(estimator)
        self.chains = self._chains() if warm_start else [[i] for i in range(len(candidates))]

    def _chains(self) -> list[list[int]]:
        """Return candidates that differ in C alone, with C ascending."""
        name = self.prefix + "C"
        groups: dict[Any, list[int]] = {}
        for number, candidate in enumerate(self.candidates):
            others = {other: value for other, value in candidate.items() if other != name}
            has_number = isinstance(candidate.get(name), Real)
            groups.setdefault(hashable(others) if has_number else number, []).append(number)
        return [
            sorted(group, key=lambda i: self.candidates[i].get(name, 0.0))
            for group in groups.values()
        ]

    def run(self, bags: Any, *, n_threads: int) -> list[list[Run]]:
        """Return what came of all starts of all candidates; the results do not depend on threads.

        Parameters
        ----------
        bags : Bags or matrix
            What to fit on.
        n_threads : int
            Fits at the same time; one leaves the threads to the fits.
        """
        tasks = [(chain, seed) for chain in self.chains for seed in self.seeds]

        def run(task: tuple[list[int], int]) -> list[Run]:
            return [run for run, _ in self._along(*task, bags)]

        if n_threads == 1:
            done = [run(task) for task in tasks]
        else:
            with closing(ordered_map(run, tasks, n_threads=n_threads)) as results:
                done = list(results)
        runs: list[list[Run]] = [[] for _ in self.candidates]
        for (chain, _), of_chain in zip(tasks, done, strict=True):
            for number, one in zip(chain, of_chain, strict=True):
                runs[number].append(one)
        return runs

    def estimator_of(self, number: int, seed: int, bags: Any) -> Any:
        """Return the estimator of a candidate and a start, not fitted, as it was in the search."""
        chain = next(chain for chain in self.chains if number in chain)
        before = chain[: chain.index(number)]
        start = self._along(before, seed, bags)[-1][1] if before else None
        return self._at(number, seed, start)

    def _along(self, chain: list[int], seed: int, bags: Any) -> list[tuple[Run, Floats | None]]:
        """Fit the candidates of a chain; return runs, and weights that the next may begin with."""
        done: list[tuple[Run, Floats | None]] = []
        for number in chain:
            estimator = self._at(number, seed, done[-1][1] if done else None)
            started = perf_counter()
            fitted = last_step(estimator.fit(bags))
            run = _run_of(fitted, perf_counter() - started)
            # A cluster that is empty would stay so: then the next begins anew.
            goes_on = _takes_weights(fitted) and run.n_empty == 0
            done.append((run, fitted.coef_ if goes_on else None))
        return done

    def _at(self, number: int, seed: int, start: Floats | list[list[float]] | None) -> Any:
        candidate = {name: clone(v, safe=False) for name, v in self.candidates[number].items()}
        estimator = clone(self.estimator).set_params(**candidate)
        known = estimator.get_params()
        settings: dict[str, Any] = {"n_init": 1, "random_state": int(seed)}
        if start is not None and isinstance(known[self.prefix + "init"], str):
            settings["init"] = start
        named = {self.prefix + name: value for name, value in settings.items()}
        return estimator.set_params(**{name: v for name, v in named.items() if name in known})


def last_step(estimator: Any) -> Any:
    """Return the clusterer of a pipeline, or the clusterer itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def prefix_of(estimator: Any) -> str:
    """Return what names of the clusterer's parameters begin with."""
    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


def _run_of(fitted: Any, seconds: float) -> Run:
    """Return what came of a fit."""
    for name in ("labels_", "result_", "n_clusters"):
        if not hasattr(fitted, name):
            msg = (
                "estimator of ClusterSearch must have labels_, n_clusters and a result_ with the "
                f"objective, as those of bagwise.cluster. Got {type(fitted).__name__}, without "
                f"{name}."
            )
            raise TypeError(msg)
    labels = np.asarray(fitted.labels_, np.int32)
    return Run(labels, fitted.n_clusters, float(fitted.result_.objective), seconds)


def _takes_weights(fitted: Any) -> bool:
    """Tell whether the weights of one fit can be the start of another."""
    is_linear = getattr(fitted, "kernel", "linear") == "linear"
    return is_linear and hasattr(fitted, "init") and hasattr(fitted, "coef_")
