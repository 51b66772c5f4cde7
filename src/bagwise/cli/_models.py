"""Models by name and from files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._data import DataRequest
from bagwise.cli._output import CommandError
from bagwise.cli._words import count, did_you_mean, meaning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bagwise.bags import Bags

IMPUTE_STEP, SCALE_STEP, MODEL_STEP = "impute", "scale", "model"


# -------------------------------------------------------------------------------------- by name


def find_model(name: str, kind: str | None = None) -> type[Any]:
    """Return the estimator class with this name, in whatever case.

    Parameters
    ----------
    name : str
        What the user wrote.
    kind : {"classifier", "clusterer"}, optional
        Only estimators of this kind, as scikit-learn's tags say.
    """
    known = models_of(kind)
    if not known:
        msg = f"no {kind} comes with this version of bagwise."
        raise CommandError(msg, code="model", where="--model")
    if name in known:
        return known[name]
    alike = [candidate for candidate in known if candidate.lower() == name.lower()]
    if len(alike) == 1:
        return known[alike[0]]
    if alike:
        msg = f"{name!r} may be {' or '.join(alike)}: these are two methods, mind the capitals."
        raise CommandError(msg, code="model", where="--model")
    others = models_of(None)
    if kind is not None and name.lower() in map(str.lower, others):
        msg = f"{name} is no {kind}. Known: {', '.join(known)}."
    else:
        msg = f"there is no {kind or 'model'} {name!r}. {did_you_mean(name, known)}"
    raise CommandError(msg, code="model", where="--model")


def models_of(kind: str | None) -> dict[str, type[Any]]:
    """Return the estimators of a kind by name."""
    from sklearn.utils import get_tags

    import bagwise

    return {
        name: cls
        for name, cls in bagwise.all_estimators()
        if kind is None or get_tags(cls()).estimator_type == kind
    }


def kind_of(cls: type[Any]) -> str:
    """Return "classifier", "clusterer" or another kind."""
    from sklearn.utils import get_tags

    return str(get_tags(cls()).estimator_type)


def make_model(cls: type[Any], params: Mapping[str, Any], seed: int, option: str) -> Any:
    """Return an estimator with these parameters, checked by its own rules.

    Parameters
    ----------
    cls : type
        The estimator class.
    params : mapping
        Parameters that the user gave.
    seed : int
        For ``random_state``, if there is such a parameter and the user gave none.
    option : str
        Where the parameters were given, for messages.
    """
    from bagwise._compat import InvalidParameterError

    known = cls().get_params(deep=False)
    for name in params:
        if name not in known:
            msg = f"{cls.__name__} has no parameter {name!r}. {did_you_mean(name, known)}"
            raise CommandError(msg, code="parameter", where=option)
    seeded = {"random_state": seed} if "random_state" in known else {}
    model = cls(**{**seeded, **params})
    try:
        model._validate_params()
    except InvalidParameterError as error:
        raise CommandError(str(error), code="parameter", where=option) from error
    return model


def prepared(model: Any, bags: "Bags", *, scale: bool, impute: bool = False) -> Any:
    """Return the model behind what is done to the instances first, if anything is.

    Parameters
    ----------
    model : estimator
        A classifier or clusterer.
    bags : Bags
        What it will learn from; sparse instances are not centred.
    scale : bool
        Whether features are scaled.
    impute : bool
        Whether missing values are filled in, before all else.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from bagwise.preprocessing import InstanceTransformer

    steps = []
    if impute:  # a feature without any value stays, or the model would have another width
        filler = SimpleImputer(keep_empty_features=True)
        steps.append((IMPUTE_STEP, InstanceTransformer(filler)))
    if scale:
        scaler = StandardScaler(with_mean=not bags.is_sparse)
        steps.append((SCALE_STEP, InstanceTransformer(scaler)))
    return Pipeline([*steps, (MODEL_STEP, model)]) if steps else model


def scaling_text(bags: "Bags") -> str:
    """Say what `prepared` does to such bags."""
    how = "variance 1" if bags.is_sparse else "mean 0 and variance 1"
    return f"Every feature is scaled to {how} over all instances; --no-scale leaves them as is."


# ------------------------------------------------------------------------------------ from a file


class FittedModel:
    """A fitted classifier or clusterer, with what a pipeline does to the instances before.

    A pipeline of scikit-learn answers for bags only; this answers for instances as well. The
    classes of a clusterer are the numbers of its clusters.

    Parameters
    ----------
    estimator : object
        A fitted bag classifier or clusterer, or a pipeline that ends in one.
    """

    def __init__(self, estimator: Any) -> None:
        from bagwise.inspection import Answers

        self.estimator = estimator
        self._answers = Answers(estimator)
        self.last = self._answers.last

    @property
    def name(self) -> str:
        """Name of the class of the classifier or clusterer."""
        return type(self.last).__name__

    @property
    def is_clusterer(self) -> bool:
        """Whether it learned without labels."""
        from sklearn.base import is_clusterer

        return bool(is_clusterer(self.last))

    def __getattr__(self, name: str) -> Any:
        if name == "classes_" and self.is_clusterer:
            import numpy as np

            return np.arange(self.last._n_features_out)
        if name == "multilabel_" and self.is_clusterer:
            return False
        if name == "pos_label_":
            return getattr(self.last, name, None)
        return getattr(self._answers, name)

    @property
    def imputes(self) -> bool:
        """Whether it fills in missing values."""
        from sklearn.impute import SimpleImputer

        steps = getattr(self.estimator, "steps", [])
        inner = (getattr(step, "transformer", None) for _, step in steps)
        return any(isinstance(transformer, SimpleImputer) for transformer in inner)

    def request(self, request: DataRequest) -> DataRequest:
        """Return a request for the features that the model takes, with missing values or not."""
        if request.missing == "impute" and not self.imputes:
            msg = "the model fills in no values: it was fitted without --missing impute."
            raise CommandError(msg, code="usage", where="--missing")
        missing = request.missing or ("impute" if self.imputes else "error")
        features = getattr(self.estimator, "feature_names_in_", None)
        if features is None and hasattr(self.estimator, "steps"):
            features = getattr(self.estimator.steps[0][1], "feature_names_in_", None)
        known = None if features is None else list(map(str, features))
        return replace(request, missing=missing, features=known)

    @property
    def n_features(self) -> int:
        """Number of features of the instances that it takes."""
        return int(self.estimator.n_features_in_)

    def own_labels(self, y: "NDArray[Any]") -> "NDArray[Any]":
        """Return labels as the classes have them, where one is text and the other is numbers.

        A label that means none of the classes stays as it is.
        """
        import numpy as np

        given, classes = y.tolist(), self.classes_.tolist()
        if y.ndim == 2 or _is_text(given) == _is_text(classes):
            return y
        known = {meaning(label): label for label in classes}
        return np.array([known.get(meaning(label), label) for label in given], dtype=object)


def _is_text(labels: list[Any]) -> bool:
    return all(isinstance(label, str) for label in labels)


def load_model(path: Path) -> FittedModel:
    """Load a classifier or a clusterer from a model file."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    import bagwise

    model = FittedModel(bagwise.load(path))
    if not hasattr(model.last, "decision_function"):
        msg = f"{path} holds a {model.name}, which is neither classifier nor clusterer."
        raise CommandError(msg, code="model", where=str(path))
    try:
        check_is_fitted(model.last)
        check_is_fitted(model.estimator)
    except NotFittedError as error:
        msg = f"{path} holds a {model.name} that has not been fitted."
        raise CommandError(msg, code="model", where=str(path)) from error
    return model


def check_width(model: FittedModel, bags: "Bags", data: str) -> None:
    """Refuse bags of another width than the model was fitted on."""
    if bags.n_features != model.n_features:
        msg = (
            f"the model takes instances with {count(model.n_features, 'feature')}, "
            f"and {data} has {bags.n_features:,}."
        )
        raise CommandError(msg, code="data", where=data)
