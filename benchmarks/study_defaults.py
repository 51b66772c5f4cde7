"""Every classifier with its default parameters on binary tasks fixed beforehand.

Protocol: a task has at most 500 bags. Of larger sets a stratified random part is taken, so that
rare labels stay rare. One third of the bags, drawn at random and stratified, is left out and the
rest learned from, five times; all methods get the same splits. Features are standardised on the
training bags, `InstanceTransformer(StandardScaler())`, for all methods alike; only the pixels of
the digits, which have one unit, are left as they are. Nothing else is set, except `random_state`
where there is one. The labels are 0 and 1.

A cell is a method on a task, with all its repeats. It fails

* ``time``: if it takes more than 300 seconds of processor time;
* ``auc``: if its mean AUC is below 0.5 where the median of the methods has 0.8 or more;
* ``accuracy``: if its mean accuracy is below the share of the majority label by more than two
  points and two standard errors, over repeats, of the difference;
* ``constant``: if a model gives all training bags the same label.

    BAGWISE_DATA=... python benchmarks/study_defaults.py [--tasks ...] [--methods ...] [--seed 0]
        [--repeats 5] [--results FILE]

Each cell is a line of the file with the results when it is done, and a cell that is there is not
run again. ``--seed`` draws other parts of the large sets, other bags from the generators and other
splits: 0 is what is published, others are there to try a change on.
"""

import argparse
import json
import signal
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import all_estimators
from bagwise.datasets import (
    fetch,
    load_digit_bags,
    make_cluster_bags,
    make_key_instance_bags,
    make_ring_bags,
    make_three_class_bags,
    make_weak_label_bags,
)
from bagwise.preprocessing import InstanceTransformer

SECONDS = 300.0
RESULTS = Path(__file__).parent / "results" / "defaults.jsonl"

METHODS = {name: cls for name, cls in all_estimators() if is_classifier(cls())}


def part_of(dataset, n_bags, label, seed):
    """Return a random part of a set of the registry, and which of its bags have the label."""
    bags = fetch(dataset).bags
    labels = np.asarray(bags.labels)
    y = (labels[:, label] if labels.ndim == 2 else labels == label).astype(int)
    if n_bags is not None:
        chosen, _ = train_test_split(
            np.arange(len(y)), train_size=n_bags, stratify=y, random_state=seed
        )
        bags, y = bags[chosen], y[chosen]
    return bags, y


def made(generator, label, seed, **parameters):
    """Return generated bags, and which of them have the label."""
    data = generator(random_state=seed, **parameters)
    y = data.y[:, label] if data.y.ndim == 2 else data.y == label
    return data.bags, np.asarray(y, int)


#: What makes the bags and labels of each task, given a seed.
TASKS = {
    **{
        name: partial(part_of, name, None, 1)
        for name in ("musk1", "musk2", "elephant", "fox", "tiger")
    },
    "corel_african": partial(part_of, "corel2000", 500, 0),
    "corel_elephants": partial(part_of, "corel2000", 500, 5),
    "corel_dogs": partial(part_of, "corel2000", 500, 10),
    "scene_desert": partial(part_of, "miml_scene", 250, 0),
    "scene_sea": partial(part_of, "miml_scene", 250, 2),
    "scene_trees": partial(part_of, "miml_scene", 250, 4),
    "reuters_1": partial(part_of, "miml_reuters", 400, 0),
    "reuters_4": partial(part_of, "miml_reuters", 400, 3),
    "reuters_7": partial(part_of, "miml_reuters", 400, 6),
    "birds_creeper": partial(part_of, "birds_hja", 150, 0),
    "birds_nuthatch": partial(part_of, "birds_hja", 150, 3),
    "birds_thrush": partial(part_of, "birds_hja", 150, 8),
    "sival_bluescrunge": partial(part_of, "sival6", 120, 0),
    "sival_rug": partial(part_of, "sival6", 120, 3),
    "news_atheism": partial(part_of, "news_alt_atheism", None, 1),
    "news_graphics": partial(part_of, "news_comp_graphics", None, 1),
    "news_hockey": partial(part_of, "news_rec_sport_hockey", None, 1),
    "news_med": partial(part_of, "news_sci_med", None, 1),
    "digits_3": partial(made, load_digit_bags, 1, target=3),
    "digits_8": partial(made, load_digit_bags, 1, target=8),
    "digits_7_rare": partial(made, load_digit_bags, 1, target=7, positive_share=0.1),
    "key": partial(made, make_key_instance_bags, 1),
    "key_rare": partial(made, make_key_instance_bags, 1, n_bags=200, positive_share=0.1),
    "key_large_bags": partial(made, make_key_instance_bags, 1, n_bags=80, min_size=20, max_size=40),
    "rings": partial(made, make_ring_bags, 1),
    "three_classes": partial(made, make_three_class_bags, 0),
    "clusters": partial(made, make_cluster_bags, 0),
    "weak_labels": partial(made, make_weak_label_bags, 0, n_bags=300),
}
UNSCALED = ("digits_3", "digits_8", "digits_7_rare")


class OutOfTimeError(Exception):
    """A cell has used up its time."""


def give_up(signum, frame):
    raise OutOfTimeError


def estimator_of(method, task, repeat):
    model = METHODS[method]()
    if "random_state" in model.get_params():
        model.set_params(random_state=repeat)
    return (
        model if task in UNSCALED else make_pipeline(InstanceTransformer(StandardScaler()), model)
    )


def run_cell(task, method, seed, n_repeats):
    """Return what is measured of a method on a task, one value for each repeat."""
    bags, y = TASKS[task](seed=seed)
    splits = StratifiedShuffleSplit(n_repeats, test_size=1 / 3, random_state=seed).split(y, y)
    cell = {"seed": seed, "task": task, "method": method, "bags": len(y), "positive": int(y.sum())}
    measured = {"auc": [], "accuracy": [], "majority": [], "constant": []}
    start = time.process_time()
    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        for repeat, (train, test) in enumerate(splits):
            model = estimator_of(method, task, repeat).fit(bags[train], y[train])
            scores = model.decision_function(bags[test])
            measured["auc"].append(roc_auc_score(y[test], scores))
            measured["accuracy"].append(float(((scores > 0) == y[test]).mean()))
            measured["majority"].append(float(max(y[test].mean(), 1 - y[test].mean())))
            measured["constant"].append(bool(len(np.unique(model.predict(bags[train]))) == 1))
    except OutOfTimeError:
        cell["out_of_time"] = True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return {**cell, **measured, "seconds": time.process_time() - start}


def failures(cell, median_auc):
    """Return the rules that a cell breaks, given the median AUC of the methods on its task."""
    if cell.get("out_of_time"):
        return ["time"]
    broken = []
    if np.mean(cell["auc"]) < 0.5 and median_auc >= 0.8:
        broken.append("auc")
    ahead = np.subtract(cell["accuracy"], cell["majority"])
    error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else 0.0
    if ahead.mean() < -0.02 - 2 * error:
        broken.append("accuracy")
    return broken + ["constant"] * any(cell["constant"])


def read_results(path, seed):
    """Return the cells of a seed by task and method; the last one counts."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    cells = [json.loads(line) for line in lines]
    return {(cell["task"], cell["method"]): cell for cell in cells if cell["seed"] == seed}


def median_aucs(cells):
    """Return the median over methods of the mean AUC, of each task."""
    aucs = {}
    for (task, _), cell in cells.items():
        if cell["auc"]:
            aucs.setdefault(task, []).append(np.mean(cell["auc"]))
    return {task: float(np.median(values)) for task, values in aucs.items()}


def summary(method, cells, medians):
    """Return the means over tasks that a line of the table shows, of a method's cells by task."""
    whole = {task: cell for task, cell in cells.items() if not cell.get("out_of_time")}
    auc, accuracy, majority = (
        np.array([np.mean(cell[name]) for cell in whole.values()])
        for name in ("auc", "accuracy", "majority")
    )
    median = np.array([medians[task] for task in whole])
    seconds = np.median([cell["seconds"] / len(cell["auc"]) for cell in whole.values()])
    return {
        "method": f"`{method}`",
        "AUC": f"{auc.mean():.3f}",
        "AUC - median": f"{(auc - median).mean():+.3f}",
        "accuracy": f"{100 * accuracy.mean():.1f}",
        "accuracy - majority": f"{100 * (accuracy - majority).mean():+.1f}",
        "constant": str(sum(sum(cell["constant"]) for cell in whole.values())),
        "seconds": f"{seconds:.2f}",
        "fails": str(sum(bool(failures(cell, medians[task])) for task, cell in cells.items())),
    }


def report(cells, tasks, methods):
    """Print a table of the methods, then the cells that fail."""
    medians = median_aucs(cells)
    verdicts = []
    for k, method in enumerate(methods):
        mine = {task: cells[task, method] for task in tasks}
        row = summary(method, mine, medians)
        if k == 0:
            print("| " + " | ".join(row) + " |", "|" + "---|" * len(row), sep="\n")
        print("| " + " | ".join(row.values()) + " |")
        for task, cell in mine.items():
            if failures(cell, medians[task]):
                verdicts.append(verdict(cell, medians[task]))
    print("", *sorted(verdicts), sep="\n")
    print(f"{len(verdicts)} of {len(tasks) * len(methods)} cells fail")


def verdict(cell, median_auc):
    """Return in words why a cell fails."""
    accuracy, majority = (100 * np.mean(cell[name]) for name in ("accuracy", "majority"))
    return (
        f"{cell['task']:>18} {cell['method']:>18}: {', '.join(failures(cell, median_auc))} "
        f"(accuracy {accuracy:.1f}, majority {majority:.1f}, AUC {np.mean(cell['auc']):.2f} of "
        f"{median_auc:.2f}, {sum(cell['constant'])} constant)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.results.parent.mkdir(parents=True, exist_ok=True)
    cells = read_results(options.results, options.seed)
    with options.results.open("a", encoding="utf-8") as file:
        for task in options.tasks:
            for method in options.methods:
                if (task, method) in cells:
                    continue
                cell = run_cell(task, method, options.seed, options.repeats)
                cells[task, method] = cell
                print(json.dumps(cell), file=file, flush=True)
    report(cells, options.tasks, options.methods)


if __name__ == "__main__":
    main()
