"""Make the model files that later versions must load: one of each kind, with what it answers.

Run it after a class was added to the registry, and after the version number was raised:

    python tests/persistence/make_files.py

Files that are there are never touched. They are in ``files/VERSION/``: ``NAME.model``, and
``NAME.json`` with the parameters and the answers of the model on the bags of ``inputs.json``.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import bagwise
from bagwise import Bags
from bagwise.cluster import BAMIC
from bagwise.kernels import InstanceMetric
from bagwise.persistence._registry import REGISTRY
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MISVM, SIL, MIGraphSVM, MIKernelSVM, StatisticKernelSVM

FILES = Path(__file__).parent / "files"
ANSWERS = (
    *("decision_function", "predict", "instance_decision_function", "instance_predict"),
    *("key_instances", "transform"),
)
#: Parameters of classes whose files would be large, or that need some.
PARAMETERS = {
    "SparseMI": {"n_vectors": 2},
    "RandomSetSVM": {"n_vectors": 2},
    "ReducedSetSVM": {"n_vectors": 2},
    "PCA": {"n_components": 2, "random_state": 0},
    "TruncatedSVD": {"n_components": 2, "random_state": 0},
    "Nystroem": {"n_components": 3, "random_state": 0},
    "InstanceTransformer": {"transformer": StandardScaler()},
    "SimpleImputer": {"add_indicator": True},
}
#: Classes that are about missing values, and learn from a matrix with one.
IMPUTERS = ("SimpleImputer", "MissingIndicator")


#: Names of files that would differ from others in case alone, which some file systems ignore.
FILE_NAMES = {"miSVM": "mi-SVM"}


def read_inputs():
    """Return the bags to learn from, their labels 0 and 1, and other bags."""
    made = json.loads((FILES / "inputs.json").read_text())
    train, new = (Bags(made[part]["instances"], made[part]["offsets"]) for part in ("train", "new"))
    return train, np.array(made["y"]), new


def sparse(bags):
    """Return the same bags with a sparse matrix."""
    return Bags(sp.csr_array(bags.instances), bags.offsets)


def variants():
    """Return models that hold other things than those with default parameters, by name."""
    train, y, _ = read_inputs()
    words = np.array(["active", "inactive"])[1 - y]
    thirds = np.array(["a", "b", "c"])[np.arange(len(y)) % 3]
    lists = np.stack([y, 1 - y, np.arange(len(y)) % 2], axis=1)
    named = Bags(train.instances, train.offsets, feature_names=["charge", "mass", "size"])
    scaled = [("scale", InstanceTransformer(StandardScaler())), ("model", MIKernelSVM())]
    metric = InstanceMetric("mahalanobis", factor=np.diag([1.0, 2.0, 0.5]))
    return {
        "SIL-linear": SIL(kernel="linear").fit(train, y),
        "SIL-fourier": SIL(approx="fourier", rank=4, random_state=0).fit(train, y),
        "SIL-cholesky": SIL(approx="cholesky", rank=4, random_state=0).fit(train, y),
        "SIL-sparse": SIL().fit(sparse(train), y),
        "SIL-lists": SIL().fit(train, lists),
        "SIL-names": SIL().fit(named, y),
        "SIL-single": SIL().fit(Bags(train.instances.astype(np.float32), train.offsets), y),
        "SIL-unfitted": SIL(C=3.0, gamma="0.5*median", class_weight={0: 1.0, 1: 2.0}),
        "MISVM-positive": MISVM(pos_label="active").fit(train, words),
        "MISVM-three": MISVM().fit(train, thirds),
        "MIGraphSVM-edges": MIGraphSVM(graph="edges").fit(train, y),
        "StatisticKernelSVM-linear": StatisticKernelSVM(kernel="linear").fit(train, y),
        "BAMIC-metric": BAMIC(2, metric=metric, random_state=0).fit(train),
        "Pipeline": Pipeline(scaled).fit(train, y),
    }


def of_registry():
    """Return a model of each class that can be saved, by the name of the class."""
    train, y, _ = read_inputs()
    made = {}
    for entry in REGISTRY.values():
        if entry.name == "Pipeline":
            continue
        cls = entry.find()
        params = dict(PARAMETERS.get(entry.name, {}))
        if "random_state" in cls._get_param_names():
            params["random_state"] = 0
        model = cls(**params)
        X = train if cls.__module__.startswith("bagwise") else train.instances.copy()
        if entry.name in IMPUTERS:
            X[0, 0] = np.nan
        learns = get_tags(model).estimator_type == "classifier"
        made[entry.name] = model.fit(X, *([y] if learns else []))
    return made


def answers(model, bags):
    """Return what a model says of bags, as lists."""
    if not [name for name in vars(model) if name.endswith("_")] and not hasattr(model, "steps"):
        return {}
    takes_bags = type(model).__module__.startswith("bagwise") or hasattr(model, "steps")
    found = {}
    for name in ANSWERS:
        if hasattr(model, name):
            value = getattr(model, name)(bags if takes_bags else bags.instances)
            found[name] = getattr(value, "instances", value).tolist()
    return found


def settings(model):
    """Return the parameters that are plain values, as they are written."""
    return {
        name: repr(value)
        for name, value in model.get_params(deep=False).items()
        if isinstance(value, None | bool | int | float | str | dict)
    }


def main():
    folder = FILES / bagwise.__version__
    folder.mkdir(parents=True, exist_ok=True)
    _, _, new = read_inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = {**of_registry(), **variants()}
        for name, model in models.items():
            path = folder / f"{FILE_NAMES.get(name, name)}.model"
            if not path.exists():
                told = {"parameters": settings(model), "answers": answers(model, new)}
                bagwise.save(model, path)
                path.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n")
                sys.stdout.write(f"{path.relative_to(FILES)}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
