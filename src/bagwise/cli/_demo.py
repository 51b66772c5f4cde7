"""``bagwise demo``: learn from bags of digits with a choice of methods, and write the report.

The object that ``--json`` prints::

    {"schema": 1, "command": "demo", "seed": int,
     "data": {"train" and "test": {"bags": int, "instances": int, "positive": int, "sha256": str}},
     "baseline": share of the more frequent label among the test bags,
     "shown": name of the method with the best cross-validation inside the training bags,
     "methods": [{"name": str, "parameters": {...}, "accuracy": on the test bags,
                  "interval": [low, high], "key_success": or null, "cv_accuracy": float,
                  "fit_seconds": float,
                  "certificate": {"status": str, "objective": float, "lower_bound": or null,
                                  "gap": or null, "n_iter": int, "solve_seconds": float} or null}],
     "report": {"path": str, "bytes": int}, "seconds": float}
"""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._certificates import certificate_json
from bagwise.cli._files import REPORT, check_target
from bagwise.cli._output import Output, number

if TYPE_CHECKING:
    from rich.table import Table

    from bagwise.datasets import BagDataset
    from bagwise.inspection import MethodCard

#: The task: a digit and sizes that make it neither trivial nor hopeless. Nothing of a method is
#: set by the test bags: cross-validation inside the training bags chooses C and the method shown.
TARGET = 3
N_BAGS = 140
METHODS = ("SIL", "miSVM", "MISVM", "MIKernelSVM", "MIGraphSVM", "MILES")
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
N_FOLDS = 5


@dataclass(frozen=True)
class _Contender:
    """A fitted method and how it does."""

    estimator: Any
    parameters: dict[str, Any]
    card: "MethodCard"


def run_demo(output: Output, path: Path, seed: int, *, overwrite: bool = False) -> None:
    """Run the demo.

    Parameters
    ----------
    output : Output
        Where to write.
    path : Path
        File for the report.
    seed : int
        Seed of the bags and the folds.
    overwrite : bool
        Whether a file that is no report may be replaced.
    """
    check_target(path, REPORT, overwrite=overwrite)
    started = time.perf_counter()
    with output.progress.status("Loading ..."):
        from bagwise.datasets import load_digit_bags
        from bagwise.inspection import data_digest, write_report

        train, test = (
            load_digit_bags(N_BAGS, target=TARGET, images=images, random_state=seed)
            for images in ("train", "test")
        )
        methods = _classifiers()
    contenders = _compete(output, methods, train, test, seed)
    # The test bags must not choose the method to show, or its accuracy there would be too good.
    shown = max(contenders, key=lambda contender: contender.card.cv_accuracy or 0.0)
    command = f"bagwise demo --seed {seed}"
    size = write_report(
        path,
        shown.estimator,
        test.bags,
        test.y,
        cards=[contender.card for contender in contenders],
        is_key=test.instance_y == TARGET,
        render=lambda pixels, row: 1 - pixels.reshape(8, 8) / 16,
        title=f"Which bags hold a {TARGET}?",
        task=f"tell bags of handwritten digits that hold a {TARGET} from bags that do not",
        bags_name="unseen bags",
        label_names=test.label_names,
        description=f"Learned from {len(train.bags)} bags, tested on others that share no image "
        f"with them. C was chosen by {N_FOLDS}-fold cross-validation inside the training bags, and "
        f"so was the method shown on top. The test bags: {test.description}",
        facts={
            "Command": command,
            "Seed": str(seed),
            "Training data (SHA-256)": data_digest(train.bags, train.y),
        },
    )
    seconds = time.perf_counter() - started
    output.result(
        _summary(shown.card, path, size),
        {
            "command": "demo",
            "seed": seed,
            "data": {
                name: {
                    "bags": len(data.bags),
                    "instances": data.bags.n_instances,
                    "positive": int(data.y.sum()),
                    "sha256": data_digest(data.bags, data.y),
                }
                for name, data in (("train", train), ("test", test))
            },
            "baseline": _baseline(test),
            "shown": shown.card.name,
            "methods": [_as_json(contender) for contender in contenders],
            "report": {"path": str(path), "bytes": size},
            "seconds": round(seconds, 3),
        },
    )


def _classifiers() -> list[tuple[str, type[Any]]]:
    import bagwise

    known = dict(bagwise.all_estimators())
    return [(name, known[name]) for name in METHODS]


def _compete(
    output: Output,
    methods: Sequence[tuple[str, type[Any]]],
    train: "BagDataset",
    test: "BagDataset",
    seed: int,
) -> list[_Contender]:
    """Fit all methods, showing each as it is done."""
    done: list[_Contender] = []
    names = [name for name, _ in methods]
    with _live_table(output, names, done) as refresh:
        for _, cls in methods:
            refresh()
            done.append(_fit(cls, train, test, seed))
        refresh()
    return done


def _fit(cls: type[Any], train: "BagDataset", test: "BagDataset", seed: int) -> _Contender:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold

    from bagwise.exceptions import ConstantModelWarning
    from bagwise.inspection import assess
    from bagwise.model_selection import BagGridSearchCV

    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed % 2**32)
    search = BagGridSearchCV(cls(), {"C": COSTS}, cv=folds, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate in the table says it
        warnings.simplefilter("ignore", ConstantModelWarning)  # as some of the candidates are
        search.fit(train.bags, train.y)
    card = assess(
        search.best_estimator_,
        test.bags,
        test.y,
        is_key=test.instance_y == TARGET,
        parameters=", ".join(f"{name} = {value:g}" for name, value in search.best_params_.items()),
        fit_seconds=search.refit_time_,
        cv_accuracy=search.best_score_,
    )
    return _Contender(search.best_estimator_, search.best_params_, card)


# ------------------------------------------------------------------------------------- progress


@contextmanager
def _live_table(output: Output, names: Sequence[str], done: Sequence[_Contender]) -> Iterator[Any]:
    """Keep a table of the methods up to date on a terminal; elsewhere, a line for each."""
    console = output.progress
    if console.is_terminal and not output.quiet:
        from rich.live import Live

        with Live(_table(names, done), console=console, refresh_per_second=8) as live:
            yield lambda: live.update(_table(names, done), refresh=True)
        return

    def tell() -> None:
        if done:
            cells = _cells(done[-1].card)
            console.print(
                f"{cells[0]}: accuracy {cells[1]}, key instance found {cells[2]}, "
                f"{cells[3]} s, {cells[4]}",
                soft_wrap=True,
                markup=False,
            )

    yield tell


def _table(names: Sequence[str], done: Sequence[_Contender]) -> "Table":
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Which bags hold a {TARGET}?", title_justify="left")
    table.add_column("method")
    for head in ("accuracy (95 % interval)", "key instance found", "seconds"):
        table.add_column(head, justify="right")
    table.add_column("certificate")
    for i, name in enumerate(names):
        if i < len(done):
            *cells, certificate = _cells(done[i].card)
            result = done[i].card.certificate
            good = result is not None and result.converged
            table.add_row(*cells, Text(certificate, "green" if good else "yellow"))
        elif i == len(done):
            table.add_row(name, Spinner("dots"), "", "", "")
        else:
            table.add_row(Text(name, "dim"), "", "", "", "")
    return table


def _cells(card: "MethodCard") -> list[str]:
    key = "-" if card.key_success is None else f"{card.key_success:.1%}"
    seconds = "-" if card.fit_seconds is None else f"{card.fit_seconds:.3f}"
    accuracy = f"{card.accuracy:.1%} ({card.interval_text})"
    return [card.name, accuracy, key, seconds, _certificate_text(card)]


def _certificate_text(card: "MethodCard") -> str:
    result = card.certificate
    if result is None:
        return "none"
    gap = number(result.gap)
    if gap is None:
        return str(result.status)
    return f"{result.status}, gap {gap:.0e}" if gap > 0 else f"{result.status}, gap 0"


# --------------------------------------------------------------------------------------- result


def _baseline(data: "BagDataset") -> float:
    share = float(data.y.mean())
    return max(share, 1 - share)


def _summary(card: "MethodCard", path: Path, size: int) -> str:
    return (
        f"{card.name} gives the right label to {card.accuracy:.1%} of {card.n_bags} unseen bags "
        f"(95 % interval {card.interval_text} %).\n"
        f"In {card.n_found} of {card.n_key_bags} bags that hold a {TARGET} it finds one.\n"
        f"Report: {path} ({size / 1000:.0f} kB). Open it in a browser: {path.resolve().as_uri()}"
    )


def _as_json(contender: _Contender) -> dict[str, Any]:
    card = contender.card
    return {
        "name": card.name,
        "parameters": contender.parameters,
        "accuracy": card.accuracy,
        "interval": None if card.interval is None else list(card.interval),
        "key_success": card.key_success,
        "cv_accuracy": card.cv_accuracy,
        "fit_seconds": card.fit_seconds,
        "certificate": certificate_json(card.certificate),
    }
