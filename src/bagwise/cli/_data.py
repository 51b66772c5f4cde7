"""The argument DATA: a file, a set of the registry, or the embedded digits."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._complete import DIGITS, set_names
from bagwise.cli._output import CommandError, Output, bad_input, json_value
from bagwise.cli._words import count, did_you_mean, parse_settings, printable, same_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bagwise.bags import Bags
    from bagwise.io import BagFile

_TEXT_COLUMN = (
    " If the column is no feature, choose with --read features=A,B,... or, if it names the "
    "instances, --read instance_name=COLUMN."
)
_MAX_LABELS_SHOWN = 6

# How Python's messages end that are about missing values, and what the commands say instead.
_PYTHON_WAY_OUT = re.compile(r" (If values are missing, make|allow_nan=True takes) .*$")
_WAY_OUT = (
    " --missing impute of 'bagwise fit' fills missing values, --missing drop leaves their "
    "instances out."
)


@dataclass(frozen=True)
class DataRequest:
    """What the user said about the data.

    Parameters
    ----------
    data : str
        Path or name.
    bag : str or None
        Column that names the bag.
    label : sequence of str
        Column with the label, or one column for each label.
    settings : sequence of str
        Further options of the reader, ``key=value``.
    missing : {"error", "drop", "impute"} or None
        What to do about missing values; None: what the settings say.
    features : sequence of str or None
        Names of the features that a model takes, in its order.
    """

    data: str
    bag: str | None = None
    label: Sequence[str] = ()
    settings: Sequence[str] = ()
    missing: str | None = None
    features: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.missing not in (None, "error", "drop", "impute"):
            msg = f"--missing must be impute, drop or error. Got {self.missing!r}."
            raise CommandError(msg, code="usage", where="--missing")

    @property
    def is_name(self) -> bool:
        """Whether it names a data set; a file of that name is meant by ``./NAME``."""
        return self.data == DIGITS or self.data in set_names()

    def paths(self) -> list[Path]:
        """Return the files and folders that are read."""
        if self.is_name:
            return []
        table = self.options().get("label_table")
        named = [self.data, table] if isinstance(table, str) else [self.data]
        return [Path(name).expanduser() for name in named]

    def arguments(self) -> list[str]:
        """Return the arguments that say the same on the command line."""
        bag = [] if self.bag is None else ["--bag", self.bag]
        labels = [part for column in self.label for part in ("--label", column)]
        settings = [part for setting in self.settings for part in ("--read", setting)]
        missing = ["--missing", "drop"] if self.missing == "drop" else []
        return [self.data, *bag, *labels, *settings, *missing]

    def options(self) -> dict[str, Any]:
        """Return the options as keywords of the reader."""
        found = parse_settings(self.settings, "--read")
        if isinstance(found.get("features"), str):
            found["features"] = [name.strip() for name in found["features"].split(",")]
        if found.get("separator") == r"\t":
            found["separator"] = "\t"
        given: dict[str, Any] = {}
        if self.bag is not None:
            given["bag"] = self.bag
        if self.label:
            given["label"] = self.label[0] if len(self.label) == 1 else list(self.label)
        for name in given:
            if name in found:
                msg = f"{name} is given by --{name} and by --read."
                raise CommandError(msg, code="usage", where=f"--{name}")
        if self.missing in ("drop", "impute"):
            given["allow_nan"] = True
        if found.get("header") is False:  # columns without names are meant by their position
            given |= {name: _position(given[name]) for name in ("bag", "label") if name in given}
        return {**given, **found}


def _position(column: Any) -> Any:
    if isinstance(column, list):
        return [_position(part) for part in column]
    return int(column) if column.lstrip("-").isdigit() else column


@dataclass(frozen=True, eq=False)
class LoadedData:
    """Bags and what is known about them.

    Parameters
    ----------
    name : str
        What the user called them.
    bags : Bags
        The bags.
    y : ndarray or None
        Labels or an indicator matrix of label lists, if known.
    label_names : tuple of str or None
        Names of the labels 0, 1, ..., if they have any.
    is_key : ndarray of bool or None
        Which instances are true key instances, if known.
    render : callable or None
        What stands for an instance in a report.
    description : str
        Where the data come from.
    guessed : mapping
        What the reader found out by itself.
    is_set : bool
        Whether it is a set of the registry.
    labels_tell_keys : bool
        Whether true key instances are known from the labels of instances.
    places : ndarray of int or None
        Place of each instance in its bag as the file has it, if instances were left out.
    """

    name: str
    bags: "Bags"
    y: "NDArray[Any] | None" = None
    label_names: tuple[str, ...] | None = None
    is_key: "NDArray[Any] | None" = None
    render: Callable[[Any, int], Any] | None = None
    description: str = ""
    guessed: Mapping[str, str] = field(default_factory=dict)
    is_set: bool = False
    labels_tell_keys: bool = True
    places: "NDArray[Any] | None" = None

    @cached_property
    def bag_names(self) -> list[str]:
        """Names of the bags, or their numbers."""
        names = self.bags.bag_names
        return list(map(str, range(len(self.bags)) if names is None else names.tolist()))

    @cached_property
    def _instances(self) -> "tuple[NDArray[Any] | None, NDArray[Any]]":
        return self.bags.instance_names, self.bags.offsets

    def instance_name(self, bag: int, place: int) -> str | None:
        """Return the name of an instance, if it has one."""
        names, offsets = self._instances
        return None if names is None else str(names[offsets[bag] + place])

    def place(self, bag: int, place: int) -> int:
        """Return the place of an instance in its bag as the file has it, from 0."""
        return place if self.places is None else int(self.places[self._instances[1][bag] + place])

    def with_positive(self, label: Any) -> "LoadedData":
        """Return the data with the instances of this label as key instances, where labels tell."""
        if label is None or not self.labels_tell_keys:
            return self
        return replace(self, is_key=_true_keys(self.bags, label))

    def need_labels(self, why: str) -> "NDArray[Any]":
        """Return the labels, or say that there are none."""
        if self.y is None:
            msg = f"{self.name} has no labels, and {why}. --label COLUMN says where they are."
            raise CommandError(msg, code="data", where=self.name)
        return self.y

    def label_name(self, label: Any) -> str | None:
        """Return the name that the data set gives to a label, if it does."""
        number = label.item() if hasattr(label, "item") else label
        names = self.label_names
        if names is None or not isinstance(number, int) or not 0 <= number < len(names):
            return None
        return names[number]

    def label_text(self, label: Any) -> str:
        """Return a label as text, with its name if it has one."""
        name = self.label_name(label)
        return str(label) if name is None else f"{label} ({name})"

    def label_list(self, n_labels: int) -> list[str]:
        """Return the names of the columns of label lists, or their numbers."""
        names = self.bags.label_names
        return list(map(str, range(n_labels) if names is None else names.tolist()))

    def true_columns(self, labels: Sequence[str]) -> "tuple[NDArray[Any], NDArray[Any]] | None":
        """Return the column of each instance's true label, -1 if it has none, and where known.

        Instance labels are names of labels; in data sets also their numbers, -1 for unknown.
        """
        import numpy as np

        truth = self.bags.instance_labels
        if truth is None:
            return None
        text = truth.astype(str)
        if np.isin(text, labels).any():
            numbers = {label: j for j, label in enumerate(labels)}
            columns = np.array([numbers.get(label, -1) for label in text.tolist()])
            return columns, np.ones(len(text), dtype=bool)
        if not self.is_set or truth.dtype.kind != "i" or not (truth >= 0).any():
            return None
        return truth, truth >= 0

    def label_counts(self) -> list[dict[str, Any]] | None:
        """Return how many bags have each label."""
        import numpy as np

        if self.y is None:
            return None
        if self.y.ndim == 2:
            names = self.label_list(self.y.shape[1])
            numbers = (self.y > 0).sum(axis=0).tolist()
            return [
                {"label": name, "name": None, "bags": number}
                for name, number in zip(names, numbers, strict=True)
            ]
        values, numbers = np.unique(self.y, return_counts=True)
        found = zip(values.tolist(), numbers.tolist(), strict=True)
        return [
            {"label": json_value(value), "name": self.label_name(value), "bags": number}
            for value, number in found
        ]

    def summary(self) -> str:
        """Return the counts in a line."""
        bags = self.bags
        text = (
            f"{printable(self.name)}: {count(len(bags), 'bag')}, "
            f"{count(bags.n_instances, 'instance')}, {count(bags.n_features, 'feature')}"
        )
        labels = self.label_counts()
        if labels is None:
            return f"{text}, no labels"
        shown = [
            printable(f"{part['label']}" + (f" ({part['name']})" if part["name"] else ""))
            + f" {part['bags']:,}"
            for part in labels[:_MAX_LABELS_SHOWN]
        ]
        more = f", ... ({len(labels):,} in all)" if len(labels) > _MAX_LABELS_SHOWN else ""
        return f"{text}; bags per label: {', '.join(shown)}{more}"

    def as_json(self) -> dict[str, Any]:
        """Return the counts as every command's JSON has them."""
        return {
            "name": self.name,
            "bags": len(self.bags),
            "instances": self.bags.n_instances,
            "features": self.bags.n_features,
            "labels": self.label_counts(),
            "guessed": dict(self.guessed),
        }


def load_data(output: Output, request: DataRequest, *, lists: bool = False) -> LoadedData:
    """Load what the user asked for, and say what was guessed.

    Parameters
    ----------
    output : Output
        Where to say it.
    request : DataRequest
        The request.
    lists : bool
        Whether lists of labels are wanted: the digits have them if they are.
    """
    with output.busy(f"Reading {request.data}"):
        if request.data == DIGITS:
            return _load_digits(request, lists=lists)
        if request.is_name:
            return _load_set(request)
        with opened_file(request) as file:
            bags = file.read()
            if request.missing == "error":
                bags.check_finite()
    tell_guesses(output, request, file.guessed)
    if request.features is not None:
        bags = _in_order(bags, request.features)
    places = None
    if request.missing == "drop":
        bags, places = _without_missing(output, bags, request.data)
    elif request.missing == "impute" and (n_missing := count_missing(bags)):
        filled = "missing value is" if n_missing == 1 else "missing values are"
        output.note(f"{n_missing:,} {filled} filled in with the mean of the feature.")
    return LoadedData(
        request.data,
        bags,
        bags.labels,
        is_key=_true_keys(bags),
        description=f"Read from {request.data}.",
        guessed=file.guessed,
        places=places,
    )


def _in_order(bags: "Bags", features: Sequence[str]) -> "Bags":
    """Return bags with these features, if they have names and all of these among them."""
    names = [] if bags.feature_names is None else bags.feature_names.tolist()
    if names == list(features) or not set(features) <= set(names):
        return bags
    columns = [names.index(name) for name in features]
    return bags.map_instances(lambda X: X[:, columns], feature_names=features)


def count_missing(bags: "Bags") -> int:
    """Return how many values are missing."""
    import numpy as np

    values = bags.instances.data if bags.is_sparse else bags.instances
    return int(np.isnan(values).sum()) if bags.allow_nan else 0


def _without_missing(output: Output, bags: "Bags", data: str) -> "tuple[Bags, NDArray[Any] | None]":
    """Return bags without the instances that miss a value, and say how many these are.

    Returns also the place that each instance had in its bag, or None if all are there. Bags without
    a name are named by the number that they had, if some are left out.
    """
    import numpy as np

    from bagwise.bags import rows_with_nan

    kept = bags.drop_missing()
    if len(kept) == 0:
        msg = f"{data}: every instance misses a value. --missing impute fills them."
        raise CommandError(msg, code="data", where=data)
    n_instances, n_bags = bags.n_instances - kept.n_instances, len(bags) - len(kept)
    if n_instances:
        gone = f" and {count(n_bags, 'bag')} that had no others" if n_bags else ""
        output.note(f"Left out: {count(n_instances, 'instance')} with missing values{gone}.")
    if not n_instances:
        return kept, None
    whole = np.flatnonzero(~rows_with_nan(bags.instances))
    bag_of = np.repeat(np.arange(len(bags)), bags.sizes)[whole]
    if n_bags and bags.bag_names is None:
        kept = _named(kept, np.unique(bag_of).astype(str))
    return kept, whole - bags.offsets[bag_of]


def _named(bags: "Bags", names: "NDArray[Any]") -> "Bags":
    """Return bags with these names."""
    from bagwise.bags import Bags

    return Bags(
        bags.instances,
        bags.offsets,
        bag_names=names,
        labels=bags.labels,
        instance_names=bags.instance_names,
        instance_labels=bags.instance_labels,
        feature_names=bags.feature_names,
        label_names=bags.label_names,
    )


def _load_digits(request: DataRequest, *, lists: bool) -> LoadedData:
    from inspect import signature

    from bagwise.datasets import load_digit_bags

    settings = _settings_only(request)
    known = [name for name in signature(load_digit_bags).parameters if name != "return_X_y"]
    _check_names(settings, known, "the digits")
    if lists:
        settings.setdefault("multilabel", True)
    with bad_input(code="data", where="--read"):
        data = load_digit_bags(**settings)
    return LoadedData(
        DIGITS,
        data.bags,
        data.y,
        data.label_names if data.y.ndim == 1 else None,
        None if data.target is None else data.instance_y == data.target,
        lambda pixels, row: 1 - pixels.reshape(8, 8) / 16,
        data.description,
        labels_tell_keys=False,
    )


def _load_set(request: DataRequest) -> LoadedData:
    from bagwise.datasets import fetch

    _check_names(_settings_only(request), [], request.data)
    with bad_input(code="data", where=request.data):
        data = fetch(request.data)
    return LoadedData(
        request.data,
        data.bags,
        data.y,
        data.label_names if data.y.ndim == 1 else None,
        _true_keys(data.bags),
        description=data.description,
        is_set=True,
    )


def _settings_only(request: DataRequest) -> dict[str, Any]:
    if request.bag is not None or request.label:
        option = "--bag" if request.bag is not None else "--label"
        msg = f"{request.data} is a data set and has no columns to choose with {option}."
        raise CommandError(msg, code="usage", where=option)
    return parse_settings(request.settings, "--read")


def _check_names(settings: Mapping[str, Any], known: Sequence[str], whose: str) -> None:
    for name in settings:
        if name not in known:
            msg = f"--read: there is no option {name!r} for {whose}. {did_you_mean(name, known)}"
            raise CommandError(msg, code="usage", where="--read")


def _true_keys(bags: "Bags", positive: Any = None) -> "NDArray[Any] | None":
    """Return which instances have the label of the positive class, if that is known.

    It is the second of two classes if nothing else is said.
    """
    import numpy as np

    y, marks = bags.labels, bags.instance_labels
    if y is None or marks is None or y.ndim == 2:
        return None
    classes = np.unique(y)
    if len(classes) != 2 or (classes.dtype.kind in "US") != (marks.dtype.kind in "US"):
        return None
    if positive is not None and same_label(classes[0].item(), positive):
        classes = classes[::-1]
    found = marks == classes[1]
    return found if found.any() else None


# ------------------------------------------------------------------------------------------ files


@contextmanager
def opened_file(request: DataRequest) -> "Iterator[BagFile]":
    """Open a file of bags, and turn what is wrong with it into one line."""
    path = Path(request.data).expanduser()
    if not path.exists():
        msg = (
            f"{request.data} is neither a file nor a data set. "
            f"{_near_names(request.data) or 'bagwise datasets list shows the sets.'}"
        )
        raise CommandError(msg, code="data", where=request.data)
    from bagwise.io import READ_OPTIONS, open_bags

    options = request.options()
    _check_names(options, READ_OPTIONS, "the reader")
    try:
        yield _open_table(path, options, request.features) or open_bags(path, **options)
    except (ValueError, TypeError) as error:
        if isinstance(error, TypeError) and not request.settings:  # not an option's wrong type
            raise
        message = str(error)
        if request.missing is not None:
            message = _PYTHON_WAY_OUT.sub(_WAY_OUT, message)
        message = in_options(message)
        if re.search(r":2: column .* is not a number\.$", message):  # in the first row of data
            message += _TEXT_COLUMN
        place = re.match(rf"{re.escape(str(path))}(:\d+)?(?=:)", message)
        where = place[0] if place else request.data
        raise CommandError(message, code="data", where=where) from error
    except ImportError as error:
        raise CommandError(str(error), code="install", where=request.data) from error


def _open_table(
    path: Path, options: Mapping[str, Any], features: Sequence[str] | None
) -> "BagFile | None":
    """Open a table with the columns that a model takes, in whatever order; None if it is none."""
    from bagwise.exceptions import BagFileError
    from bagwise.io import open_bags

    if features is None or "features" in options or options.get("header") is False:
        return None
    try:
        return open_bags(path, **options, features=list(features))
    except BagFileError as error:
        absent = re.search(r"there is no column ('.*') \(features=\)", str(error))
        if absent is None:
            return None
        msg = f"{path} has no column {absent[1]}, which is a feature of the model."
        raise CommandError(msg, code="data", where=str(path)) from error
    except ValueError:  # such files have no columns to choose
        return None


def _near_names(name: str) -> str:
    close = did_you_mean(name, (DIGITS, *set_names()))
    return "" if close.startswith("Known") else close


def in_options(message: str) -> str:
    """Say options as the command line has them, where a message has Python's keywords."""
    from bagwise.io import READ_OPTIONS

    names = "|".join(READ_OPTIONS)
    message = re.sub(r"(?<=[\s(])(bag|label)=(?![\w\"'\[])", r"--\1", message)
    message = re.sub(rf"(?<=[\s(])({names})=(?=[\w\"'\[])", r"--read \1=", message)
    return re.sub(rf"(?<=[\s(])({names})=(?![\w\"'\[])", r"--read \1=VALUE", message)


def tell_guesses(output: Output, request: DataRequest, guessed: Mapping[str, str]) -> None:
    """Say what the reader found out by itself, unless it is no news: a suffix, a comma."""
    told = [
        f"{role} is {what}"
        for role, what in guessed.items()
        if not (role == "format" and "the suffix" in what) and (role, what) != ("separator", ",")
    ]
    if told:
        output.note(f"Guessed for {printable(request.data)}: {printable('; '.join(told))}.")
