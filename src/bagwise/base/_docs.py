"""The entries that docstrings of estimators share, and the decorator that puts them in.

In the docstring of a class, ``|kernel|`` on a line of its own stands for the entry ``kernel`` of
`ENTRIES`, and ``|classes_, multilabel_|`` for two entries. Text that is indented below such a line
is added to the (last) entry. An entry of the same name with another text has a word behind a colon:
``|kernel: bags|``.
"""

import re
import textwrap
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_WIDTH = 100
_PLACEHOLDER = re.compile(r"^( *)\|([^|\n]+)\|$((?:\n\1 +\S.*$)*)", re.MULTILINE)


def documented(cls: Class) -> Class:
    """Complete the docstring of a class with the entries of `ENTRIES` that it names.

    Raises
    ------
    KeyError
        If there is no such entry.
    """
    if cls.__doc__ is not None:  # as it is with python -OO
        try:
            cls.__doc__ = _PLACEHOLDER.sub(_entries, cls.__doc__)
        except KeyError as error:
            msg = f"The docstring of {cls.__name__} asks for {error}, which is not in ENTRIES."
            raise KeyError(msg) from None
    return cls


def _entries(match: re.Match[str]) -> str:
    """Return the entries that one placeholder stands for."""
    indent, keys, more = match.groups()
    *first, last = keys.split(", ")
    return "\n".join([*(_entry(key, indent) for key in first), _entry(last, indent, more)])


def _entry(key: str, indent: str, more: str = "") -> str:
    kind, text = ENTRIES[key]
    body = textwrap.fill(
        " ".join(f"{text} {more}".split()),
        _WIDTH,
        initial_indent=f"{indent}    ",
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{indent}{key.partition(':')[0]} : {kind}\n{body}"


# ------------------------------------------------------------------------ kernels and their maps

_FORMULAS = {
    "rbf": r":math:`\exp(-\gamma |x - y|^2)`",
    "linear": r":math:`\langle x, y \rangle`",
    "poly": r":math:`(\gamma \langle x, y \rangle + c_0)^p`",
    "laplacian": r":math:`\exp(-\gamma |x - y|_1)`",
    "chi2": r":math:`\exp(-\gamma \sum_k (x_k - y_k)^2 / (x_k + y_k))` for features that are not"
    " negative",
    "cosine": "the linear kernel of rows scaled to length 1",
}
_ANY = ("rbf", "linear", "poly", "laplacian", "chi2", "cosine")
_GIVEN_INSTANCES = """With ``"precomputed"`` the bags hold rows of the kernel matrix: in ``fit`` a
    square matrix between all training instances, later one row for each instance and one column
    for each training instance."""
_GIVEN_BAGS = """With ``"precomputed"`` the input is the kernel between *bags*: in ``fit`` a square
    matrix, later one row for each bag and one column for each training bag."""


def _kernel(
    names: tuple[str, ...], between: str, *, given: str = "", may_be_callable: bool = True
) -> tuple[str, str]:
    """Return the entry of a kernel that can be one of these."""
    options = ", ".join(f'"{name}"' for name in (*names, *(["precomputed"] if given else [])))
    formulas = "; ".join(f'``"{name}"``: {_FORMULAS[name]}' for name in names)
    text = f"Kernel between {between}. {formulas}."
    if may_be_callable:
        text += " A callable takes two matrices and returns the kernel between their rows."
    return f"{{{options}}}{' or callable' * may_be_callable}", f"{text} {given}"


def _approx(rows: str) -> tuple[str, str]:
    """Return the entry of the low-rank map of a kernel between ``rows``."""
    return (
        '{"cholesky", "nystroem", "fourier"} or None',
        f"""Replace the kernel by inner products of ``rank`` features, so that cost and memory grow
        only linearly with the {rows}. ``"cholesky"``: a pivoted Cholesky factor, which takes the
        {rows} that matter most as landmarks; ``"nystroem"``: landmarks drawn at random;
        ``"fourier"``: random Fourier features (RBF and Laplacian kernels). None: the kernel itself,
        as always where it is linear or precomputed.""",
    )


_KERNELS = {
    "kernel": _kernel(_ANY, "instances", given=_GIVEN_INSTANCES),
    "kernel: bags": _kernel(_ANY, "instances", given=_GIVEN_BAGS),
    "kernel: statistics": _kernel(_ANY, "vectors of statistics", given=_GIVEN_BAGS),
    "kernel: minimax": _kernel(
        ("poly", "rbf", "linear", "laplacian", "chi2", "cosine"),
        "vectors of statistics",
        given=_GIVEN_BAGS,
    ),
    "kernel: clusters": _kernel(
        ("linear", "rbf", "poly", "laplacian", "chi2", "cosine"), "instances"
    ),
    "kernel: vectors": _kernel(_ANY, "instances and vectors", may_be_callable=False),
    "kernel: smooth": _kernel(
        ("rbf", "poly", "linear", "cosine"), "instances and vectors", may_be_callable=False
    ),
    "gamma": (
        '{"scale", "auto", "median"}, a rule such as "2/d", or float',
        r"""Kernel coefficient :math:`\gamma`, by which distances or inner products are multiplied.
        ``"scale"`` is 1 / (n_features x variance of all values), ``"auto"`` is 1 / n_features,
        ``"median"`` is 1 / median of the squared distances; ``"2/d"`` is 2 / n_features,
        ``"0.5*median"`` half of ``"median"``, and so on.""",
    ),
    "degree": ("int", "Degree :math:`p` of the polynomial kernel."),
    "coef0": ("float", "Constant :math:`c_0` of the polynomial kernel."),
    "coef0: not negative": (
        "float",
        "Constant :math:`c_0` of the polynomial kernel, not negative.",
    ),
    "approx": _approx("instances"),
    "approx: statistics": _approx("bags"),
    "rank": ("int", "Number of features of the map that ``approx`` names."),
    "gamma_": ("float", "The value of ``gamma`` in use, if the kernel has one."),
}

# ------------------------------------------------------------------------ distances between bags

_DISTANCE = """The distance between bags, of the distances from the instances of each to the nearest
    instance of the other: the smallest of all, the largest, or their mean."""

_DISTANCES = {
    "distance": (
        '{"min", "max", "average", "precomputed"}',
        f"""{_DISTANCE} With ``"precomputed"`` the input is a matrix of distances: in ``fit``
        between all training bags, square and symmetric, afterwards with a row for each new bag and
        a column for each training bag.""",
    ),
    "distance: of instances": ('{"min", "max", "average"}', _DISTANCE),
    "metric": (
        "str, InstanceMetric or callable",
        """Distance between instances: ``"euclidean"``, ``"sqeuclidean"``, ``"cityblock"``,
        ``"cosine"``, a `bagwise.kernels.InstanceMetric`, which may be a learned Mahalanobis metric,
        or a function of two matrices that returns the distances between their rows.""",
    ),
}

# ------------------------------------------------------------------------ parameters of a fit

_PARAMETERS = {
    "n_vectors": ("int", "Number of expansion vectors, for all classes together."),
    "C": ("float", "Cost of margin violations."),
    "class_weight": (
        'dict, "balanced" or None',
        """Weights of the classes: what every bag of the class weighs. ``"balanced"`` gives all
        classes the same total, and with label lists the two sides of each label.""",
    ),
    "positive_cost": (
        'float, "sqrt" or "auto"',
        r"""What an instance of a positive bag costs, in units of one of a negative bag: its label
        may be wrong. ``"sqrt"`` is :math:`1 / \sqrt{n_i}` in a bag of :math:`n_i` instances:
        between 1, as if all of them were positive, and :math:`1 / n_i`, as if one were. ``"auto"``
        is 1, unless bags that are left out of the fit are ranked by chance then: see Notes.""",
    ),
    "pos_label": (
        "label or None",
        """The positive one of two classes, in which a few instances make the bag what it is. With
        None it is the second one in sorted order; unless the labels are 0 and 1, -1 and 1 or
        booleans, a warning says so. The order of ``classes_`` and the meaning of scores do not
        depend on it: if the first class is positive, its bags have negative scores. With more
        classes and with label lists it must be None.""",
    ),
    "cache_size": (
        "float",
        """Megabytes for the kernel matrix. Beyond 200 its rows are computed, and take memory, when
        they are needed first; of a matrix that does not fit, as many as do are kept.""",
    ),
    "cache_size: passes": (
        "float",
        """Megabytes for the kernel matrix. Beyond 200 its rows are computed, and take memory, when
        they are needed first; of a matrix that does not fit, as many as do are kept. With
        ``approx="nystroem"`` or ``"fourier"``, megabytes for the features of all instances; where
        they do not fit, the instances are read in passes and mapped each time.""",
    ),
    "cache_size: bags": (
        "float",
        """Megabytes for the kernel matrix between bags. One that is larger is not formed: as many
        of its rows as fit are kept, the others computed when needed.""",
    ),
    "cache_size: unused": (
        "float",
        "Megabytes for a kernel matrix between instances; this method forms none.",
    ),
    "tol": ("float", "Largest violation of the optimality conditions at which the solver stops."),
    "tol: by passes": (
        "float",
        """Largest violation of the optimality conditions at which the solver stops. With the linear
        kernel and 2**22 values or more, and where a map does not fit in ``cache_size``, a thousand
        times this is the relative duality gap at which it stops, 0.01 at most.""",
    ),
    "tol: rounds": (
        "float",
        """Largest violation of the optimality conditions of each convex problem, and relative
        decrease of the objective at which the rounds end.""",
    ),
    "tol: rounds by passes": (
        "float",
        """Largest violation of the optimality conditions of each convex problem, and relative
        decrease of the objective at which the rounds end. With the linear kernel and 2**22 values
        or more, and where a map does not fit in ``cache_size``, a thousand times this is the
        relative duality gap of each convex problem, 0.01 at most.""",
    ),
    "max_iter": (
        "int",
        """Most iterations of the solver: steps that change two multipliers. With the linear kernel
        and low-rank maps they are sweeps over the data, a thousand at most.""",
    ),
    "max_iter: rounds": ("int", "Most rounds from each start."),
    "random_state: maps": (
        "int, RandomState or None",
        "Seed of the maps of ``approx`` that are random; nothing else is.",
    ),
    "max_memory: kernel": (
        "int, str or None",
        """Bytes, or text like ``"512MB"``, for the kernel between all instances and the vectors. If
        it takes more, it is not kept but computed when it is needed, and the chunks of a store that
        are read at a time are bounded, too; the model is the same. None always keeps it.""",
    ),
    "max_memory: passes": (
        "int, str or None",
        """Bound, in bytes or like ``"512MB"``, on the chunks of instances that are in memory at a
        time where these are read in passes; the model is the same. None sets no bound: pages of a
        store that are mapped then count as memory of the process, and passes take less time.""",
    ),
    "random_state: starts": ("int, RandomState or None", "Seed of the random starts."),
    "random_state: starts and maps": (
        "int, RandomState or None",
        """Seed of the random starts, if there are any, and of the maps of ``approx`` that are
        random; nothing else is.""",
    ),
    "n_init": (
        'int or "auto"',
        """Number of starts. ``"auto"`` takes those that are not random: the first problem above,
        and the one in which of each positive bag only the likely key instance is positive. A number
        takes as many of these and then random ones; 1 is the first alone. Kept is the end with the
        fewest training bags on the wrong side (the mean of the shares of both classes), among
        several the one with the lowest objective. A start that is far behind an end with none on
        the wrong side is left where it is.""",
    ),
    "n_jobs": (
        "int or None",
        "Threads for the one-vs-rest problems. Kernels use all processors regardless.",
    ),
    "n_jobs: starts": ("int or None", "Threads for the starts; they do not change the result."),
    "n_jobs: classes": (
        "int or None",
        "Threads for the classifiers of several classes. Kernels use all processors regardless.",
    ),
}

# ------------------------------------------------------------------------ fitted attributes

_MATRIX = "ndarray or CSR array of shape (n_support, n_features)"
_DUAL = "ndarray of shape (n_outputs, n_support)"
_COEF = """Weights of the features, with the linear kernel and with ``approx="fourier"`` only; in
    the latter case there are ``rank`` of them."""
_FOURIER = 'Frequencies of the random Fourier features, with ``approx="fourier"`` only.'
_SUPPORT_BAGS = """Which training bags carry the decision function; bags of weight 0 are not
    counted, except as columns of a given kernel matrix."""

_ATTRIBUTES = {
    "classes_": ("ndarray of shape (n_classes,)", "The labels."),
    "multilabel_": ("bool", "Whether it was fitted on label lists."),
    "pos_label_": (
        "label or None",
        "The positive one of two classes; None with more classes and with label lists.",
    ),
    "labels_": ("ndarray of int of shape (n_bags,)", "Cluster of each training bag."),
    "instance_labels_": (
        "ndarray of int of shape (n_instances,)",
        "Cluster of each training instance, bag after bag.",
    ),
    "n_features_in_": ("int", "Number of features."),
    "feature_names_in_": (
        "ndarray of str of shape (n_features_in_,)",
        "Names of the features, if the data had any.",
    ),
    "intercept_": ("ndarray of shape (n_outputs,)", "Constant of the decision function."),
    "intercept_: instances": (
        "ndarray of shape (n_outputs,)",
        "Constant of the decision function of instances.",
    ),
    "intercept_shift_": (
        "ndarray of shape (n_outputs,)",
        """What ``intercept_`` was moved by, if the optimum gives all training bags one of two
        labels: then the positive one is predicted for as much weight of bags as has that label, or
        nearly so if more would be wrong than by the most frequent one, among bags that were left
        out of the fit in three folds. Else 0. ``result_`` is about the optimum, whose constant is
        ``intercept_ - intercept_shift_``.""",
    ),
    "intercept_shift_: training": (
        "ndarray of shape (n_outputs,)",
        """What ``intercept_`` was moved by: to the threshold with the fewest errors on the training
        bags. If that gives all of them one of two labels, to where the positive one is predicted
        for as much weight of bags as has that label, or nearly so if more would be wrong than by
        the most frequent one, among bags that were left out of the fit in three folds. ``result_``
        is about the optimum, whose constant is ``intercept_ - intercept_shift_``. Not with
        ``threshold="zero"``.""",
    ),
    "positive_cost_": (
        "list",
        """What instances of positive bags cost in each binary problem: ``positive_cost``, or what
        was chosen.""",
    ),
    "intercept_shift_: margins": (
        "ndarray of shape (n_outputs,)",
        """What ``intercept_`` was moved by, if there are two labels and all training bags get the
        same, or fewer of them their own than by the most frequent one (by weight): margins cost
        something on either side of the band. Then the positive label is predicted for as much
        weight of bags as has it, or nearly so if more would be wrong than by the most frequent one,
        among bags that were left out of the fit in three folds. Else 0. ``result_`` is about the
        optimum, whose constant is ``intercept_ - intercept_shift_``.""",
    ),
    "intercept_shift_: instances": (
        "ndarray of shape (n_outputs,)",
        """What ``intercept_`` was moved by, if there are two labels and all training bags get the
        same, or fewer of them their own than by the most frequent one (by weight): mistakes are
        counted by instances. Then the positive label is predicted for as much weight of bags as has
        it, or nearly so if more would be wrong than by the most frequent one, among bags that were
        left out of the fit in three folds. Else 0. ``result_`` is about the optimum, whose constant
        is ``intercept_ - intercept_shift_``.""",
    ),
    "intercept_shift_: by heart": (
        "ndarray of shape (n_outputs,)",
        """What ``intercept_`` was moved by, if there are two labels and bags of several instances.
        Three folds of bags are left out of a fit in turn: if fewer of these bags get their label
        than by the most frequent one (by weight), or all training bags get the same, the positive
        label is predicted for as much weight of bags as has it, or nearly so if more would be wrong
        than by the most frequent one, among those that were left out. Else 0. With the linear
        kernel and ``approx``, training bags tell whether it moves. ``result_`` is about the
        optimum, whose constant is ``intercept_ - intercept_shift_``.""",
    ),
    "intercept_shift_: others": (
        "ndarray of shape (n_outputs,)",
        """What ``intercept_`` was moved by, if there are two labels. Three folds of bags are left
        out of a fit in turn: if fewer of these bags get their label than by the most frequent one
        (by weight), or all training bags get the same, the positive label is predicted for as much
        weight of bags as has it, or nearly so if more would be wrong than by the most frequent one,
        among those that were left out. Else 0. ``result_`` is about the optimum, whose constant is
        ``intercept_ - intercept_shift_``.""",
    ),
    "intercept_shift_: frequency": (
        "ndarray of shape (n_outputs,)",
        """What is added to the scores of bags. With two classes, where all training bags get the
        same, or fewer of them their own than by the most frequent one (by weight), both are
        predicted as often as there are, or nearly so if more would be wrong than by the most
        frequent one: the objective does not know which is rare. Else 0.""",
    ),
    "result_": (
        "Certificate",
        "Objective, duality gap, how the solver ended, and the seconds of the whole fit.",
    ),
    "result_: nothing": (
        "Certificate",
        "The seconds of the whole fit; there is nothing to optimise.",
    ),
    "result_: rounds": (
        "Certificate",
        """Objective above, its values over the rounds, how they ended, and with several starts the
        objectives at which all of them ended, ``ends``.""",
    ),
    "n_iter_: nothing": ("int", "0."),
    "n_iter_": ("int", "Iterations of the solver."),
    "n_iter_: rounds": ("int", "Rounds from the start that was kept, summed over outputs."),
    # An expansion over instances.
    "support_vectors_": (
        _MATRIX,
        """Instances that carry the decision function, or the landmarks. Not with the linear
        kernel, random Fourier features or a given kernel matrix.""",
    ),
    "support_": (
        "ndarray of int of shape (n_support,)",
        """Which training instances they are; those in bags of weight 0 are not counted. Not for
        landmarks.""",
    ),
    "dual_coef_": (_DUAL, "Coefficients of the support vectors in the decision function."),
    "coef_": ("ndarray of shape (n_outputs, n_features)", _COEF),
    "fourier_weights_": ("ndarray of shape (n_features_in_, rank)", _FOURIER),
    "fourier_offset_": ("ndarray of shape (rank,)", "Their phases."),
    # One over the instances of bags.
    "support_: bags": ("ndarray of int of shape (n_support_bags,)", _SUPPORT_BAGS),
    "support_vectors_: bags": (
        _MATRIX,
        """The instances of these bags, or the landmarks. Not with the linear kernel, random Fourier
        features or a given kernel matrix.""",
    ),
    "dual_coef_: bags": (
        _DUAL,
        """Coefficients of the support vectors in the decision function; with ``"precomputed"``
        those of the bags.""",
    ),
    # One over statistics of bags.
    "support_: statistics": ("ndarray of int of shape (n_support,)", _SUPPORT_BAGS),
    "support_vectors_: statistics": (
        "ndarray of shape (n_support, n_statistics)",
        """Their statistics, or the landmarks. Not with the linear kernel, random Fourier features
        or a given kernel matrix.""",
    ),
    "coef_: statistics": (
        "ndarray of shape (n_outputs, n_statistics)",
        _COEF.replace("features", "statistics", 1),
    ),
    "fourier_weights_: statistics": ("ndarray of shape (n_statistics, rank)", _FOURIER),
    # One over few vectors.
    "expansion_vectors_": (
        "ndarray of shape (n_vectors_, n_features)",
        """The vectors :math:`z_k`, in the precision of the instances; fewer than ``n_vectors`` if
        there are fewer distinct instances.""",
    ),
    "coef_: vectors": (
        "ndarray of shape (n_outputs, n_vectors_)",
        r"Their coefficients :math:`\beta_k` in each output.",
    ),
}

# ------------------------------------------------------------------------ metric learners

_USED = """The columns of the labels that have a centre. Others are never predicted."""

_METRICS = {
    "n_components: directions": (
        "int, optional",
        """Use only so many directions of the features, those along which instances are longest; by
        default all. Other kernels than the linear one need it, or ``ridge``.""",
    ),
    "n_components: metric": (
        "int, optional",
        """Number of dimensions :math:`r` that instances are mapped to. By default half of those
        of the instances, and at least two; with all of them the metric is the Euclidean one.""",
    ),
    "ridge": (
        "float",
        r":math:`\lambda`, in units of the mean eigenvalue of the Gram matrix of features.",
    ),
    "center": ("bool", "Whether to subtract the mean of the features."),
    "rule": (
        '{"distance", "similarity"}',
        r"""What scores a label: minus the squared distance from its mean, or the entry of the
        mapped instance that belongs to it, less ``alpha`` :math:`/ \sqrt n` times the squared norm
        of the mapped mean.""",
    ),
    "alpha: similarity": (
        "float",
        """How much the norm of the mapped mean counts with ``rule="similarity"``.""",
    ),
    "reject": ("float, optional", "An instance whose best score is below is none of these."),
    "max_pairs": (
        "int",
        """Most pairs of bags that share a label, and most that share none. Where there are more,
        so many are drawn.""",
    ),
    "random_state: pairs": (
        "int, RandomState or None",
        "Seed of the draw of pairs, if there are more than ``max_pairs``; nothing else is random.",
    ),
    "assignments_": (
        "ndarray of int of shape (n_instances,)",
        "For each training instance the column of its label, -1 if it bears none.",
    ),
    "components_: kernel": (
        "ndarray of shape (n_used, n_features)",
        r":math:`L^\top`; with the linear kernel only.",
    ),
    "components_": (
        "ndarray of shape (n_components, n_features)",
        r""":math:`L^\top`. After the map, instances are uncorrelated, and vary most along the
        first.""",
    ),
    "centroids_: kernel": (
        "ndarray of shape (n_used, n_features)",
        "The mean of the instances of each label; with the linear kernel only.",
    ),
    "centroids_": (
        "ndarray of shape (n_used, n_features)",
        "The mean of the instances of each label.",
    ),
    "mapped_centroids_: square": (
        "ndarray of shape (n_used, n_used)",
        "The means after the map.",
    ),
    "mapped_centroids_": (
        "ndarray of shape (n_used, n_components)",
        "The centres of the labels after the map.",
    ),
    "used_": ("ndarray of int of shape (n_used,)", _USED),
    "n_labelled_": ("float", "The weight :math:`n` of the training instances with a label."),
    "offset_: center": (
        "ndarray of shape (n_used,)",
        "What is subtracted from mapped instances; not 0 only with ``center``.",
    ),
    "offset_": (
        "ndarray of shape (n_components,)",
        "What is subtracted from mapped instances, so that their mean is 0.",
    ),
    "support_vectors_: map": (
        "ndarray or CSR matrix of shape (n_support, n_features)",
        "Instances or landmarks that the map is made of; with other kernels.",
    ),
    "dual_coef_: map": (
        "ndarray of shape (n_used, n_support)",
        "Their coefficients in :math:`L`.",
    ),
    "coef_: map": (
        "ndarray of shape (n_used, rank)",
        "The map of random Fourier features; only with these.",
    ),
}

# ------------------------------------------------------------------------ searches

_SEARCHES = {
    "estimator: search": (
        "estimator",
        "What to fit, such as ``MIKernelSVM()`` or a `Pipeline` that ends with it.",
    ),
    "param_grid": ("dict or list of dict", "Values to try for each parameter."),
    "param_distributions": (
        "dict or list of dict",
        """For each parameter a list of values, or a distribution with a method ``rvs`` such as
        those of `scipy.stats`.""",
    ),
    "scoring": (
        "str, callable, list, tuple or dict, optional",
        "How to score; the estimator's own ``score`` if left out.",
    ),
    "scoring: one": (
        "str or callable, optional",
        "How to score; the estimator's own ``score`` if left out.",
    ),
    "n_jobs: search": (
        "int or None",
        """Fits at the same time, in threads, which share the matrices; where nothing is shared, in
        processes as in scikit-learn.""",
    ),
    "refit": (
        "bool, str or callable",
        "Whether, or by which score, to fit the best estimator on all bags in the end.",
    ),
    "refit: one": ("bool or callable", "Whether to fit the best estimator on all bags in the end."),
    "cv": ("int, splitter or iterable", "How to split; an integer means so many stratified folds."),
    "verbose": ("int", "How much to print."),
    "verbose: fit": (
        "int",
        "0 is silent. 1 shows where the fit is, on the standard error stream: a line that changes "
        "on a terminal and in a notebook, elsewhere one every five seconds. 2: a line for each "
        "step.",
    ),
    "pre_dispatch": ("int or str", "How many fits are prepared ahead."),
    "error_score": ('"raise" or float', "The score where a fit fails."),
    "return_train_score": ("bool", "Whether to score the training bags as well."),
    "cache_size: search": (
        "float",
        """Megabytes for what is shared; what was not used for longest is forgotten first. A matrix
        that does not fit alone is not shared.""",
    ),
    "factor": ("float", "Of the candidates, one in so many goes on to the next round."),
    "resource": (
        "str",
        """What grows from round to round by ``factor``: ``"n_samples"``, the number of bags, or a
        parameter of the estimator.""",
    ),
    "max_resources": ('int or "auto"', """Most of it for one candidate; ``"auto"`` is all bags."""),
    "min_resources": (
        '{"exhaust", "smallest"} or int',
        """How much of it the first round has. ``"smallest"`` is a small number, ``"exhaust"`` such
        that the last round has as much as possible.""",
    ),
    "aggressive_elimination": (
        "bool",
        "Whether rounds that are one too many for the resource repeat the first amount.",
    ),
    "random_state: search": (
        "int, RandomState or None",
        "Seed of what is drawn: candidates, and the bags of a round.",
    ),
    "cv_results_": (
        "dict of ndarray",
        """Scores, ranks and times of all candidates, in the order of the grid or of the draw. Work
        that is shared counts in the ``fit_time`` of the fit that did it first.""",
    ),
    "best_estimator_": (
        "estimator",
        "The estimator with the best parameters, fitted on all bags; only with ``refit``.",
    ),
    "best_score_": ("float", "Its mean score over the folds."),
    "best_params_": ("dict", "Its parameters."),
    "best_index_": ("int", "Its place among the candidates."),
    "scorer_": ("callable or dict", "The scorers."),
    "n_splits_": ("int", "Number of folds."),
    "refit_time_": ("float", "Seconds of the last fit."),
    "multimetric_": ("bool", "Whether there are several scores."),
    "classes_: search": ("ndarray of shape (n_classes,)", "The labels; only with ``refit``."),
    "n_features_in_: search": ("int", "Number of features; only with ``refit``."),
    "n_resources_": ("list of int", "How much of the resource each round had."),
    "n_candidates_": ("list of int", "How many candidates each round had."),
    "n_remaining_candidates_": ("int", "How many would go on after the last round."),
    "min_resources_": ("int", "How much of it the first round had."),
    "max_resources_": ("int", "Most of it that a round may have."),
    "n_iterations_": ("int", "Rounds."),
    "n_required_iterations_": ("int", "Rounds after which less than ``factor`` candidates remain."),
    "n_possible_iterations_": ("int", "Rounds for which the resource is enough."),
}

#: Name of a parameter or attribute, with a word behind it where there are several -> type, text.
ENTRIES: dict[str, tuple[str, str]] = {
    **_KERNELS,
    **_DISTANCES,
    **_PARAMETERS,
    **_ATTRIBUTES,
    **_METRICS,
    **_SEARCHES,
}
