"""Which checks an estimator gets, and how they are run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from unittest import SkipTest

from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from bagwise.testing import (
    _checks_certificate,
    _checks_clusters,
    _checks_ecosystem,
    _checks_extremes,
    _checks_fit,
    _checks_input,
    _checks_instances,
    _checks_invariance,
    _checks_labels,
    _checks_order,
    _checks_positive,
    _checks_weights,
)
from bagwise.testing._models import (
    bag_tags,
    is_bag_classifier,
    is_bag_clusterer,
    is_own,
    takes,
    takes_label_lists,
)

Check: TypeAlias = Callable[[Any], None]


def _any(estimator: Any) -> bool:
    return True


def _needs_no_arguments(estimator: Any) -> bool:
    return not isinstance(estimator, MetaEstimatorMixin)


def _takes_sparse(estimator: Any) -> bool:
    return bool(get_tags(estimator).input_tags.sparse)


def _takes_weights(estimator: Any) -> bool:
    return has_fit_parameter(estimator, "sample_weight") and is_bag_classifier(estimator)


def _takes_class_weights(estimator: Any) -> bool:
    return _takes_weights(estimator) and takes(estimator, "class_weight")


def _is_asymmetric(estimator: Any) -> bool:
    return is_bag_classifier(estimator) and bag_tags(estimator).asymmetric


def _takes_jobs(estimator: Any) -> bool:
    return takes(estimator, "n_jobs")


def _has_analogue(estimator: Any) -> bool:
    return bag_tags(estimator).supervised_analogue is not None


def _learns(estimator: Any) -> bool:
    return is_bag_classifier(estimator) or is_bag_clusterer(estimator)


def _labels_share_instances(estimator: Any) -> bool:
    return takes_label_lists(estimator) and not bag_tags(estimator).exclusive_labels


def _scores_instances(estimator: Any) -> bool:
    return _learns(estimator) and bag_tags(estimator).instance_scores


def _scores_bags_only(estimator: Any) -> bool:
    return _learns(estimator) and not bag_tags(estimator).instance_scores


def _scores_by_best_instance(estimator: Any) -> bool:
    return _scores_instances(estimator) and bag_tags(estimator).max_rule


def _transforms(estimator: Any) -> bool:
    return hasattr(estimator, "transform")


def _iterates(estimator: Any) -> bool:
    return _learns(estimator) and takes(estimator, "max_iter")


def _predicts_training_labels(estimator: Any) -> bool:
    return is_bag_clusterer(estimator) and bag_tags(estimator).predicts_training_labels


def _descends(estimator: Any) -> bool:
    return is_bag_clusterer(estimator) and bag_tags(estimator).descends


def _clusters_by_outstanding_instance(estimator: Any) -> bool:
    # With a kernel of distances all instances are of one length, and none stands out.
    linear = getattr(estimator, "kernel", "linear") == "linear"
    return is_bag_clusterer(estimator) and _scores_by_best_instance(estimator) and linear


def _starts_from_values(estimator: Any) -> bool:
    # A larger tolerance means random starts, which are others in another order.
    return _learns(estimator) and bag_tags(estimator).order_tolerance <= 0.01


def _sees_no_units(estimator: Any) -> bool:
    return _learns(estimator) and bag_tags(estimator).scale_powers is not None


def _sees_no_origin(estimator: Any) -> bool:
    return _learns(estimator) and bag_tags(estimator).shift_invariant


def _sees_differences(estimator: Any) -> bool:
    # Clusterers may start from weights that are drawn one after another.
    return _sees_no_origin(estimator) and is_bag_classifier(estimator)


def _has_key_instances(estimator: Any) -> bool:
    return is_bag_clusterer(estimator) and bag_tags(estimator).instance_scores


#: For whom, and which checks.
_BATTERY: tuple[tuple[Callable[[Any], bool], tuple[Check, ...]], ...] = (
    (
        _any,
        (
            _checks_input.check_sequences_agree,
            _checks_input.check_cube_agrees,
            _checks_input.check_integers_agree,
            _checks_input.check_memory_map_agrees,
            _checks_input.check_lazy_agrees,
            _checks_input.check_selection_agrees,
            _checks_input.check_rows_are_bags_of_one,
            _checks_input.check_input_unchanged,
            _checks_input.check_float32,
            _checks_input.check_feature_names,
            _checks_input.check_frame_names,
            _checks_input.check_wrong_width_refused,
            _checks_input.check_nonfinite_refused,
            _checks_input.check_empty_bag_refused,
            _checks_input.check_ragged_bags_refused,
            _checks_input.check_text_refused,
            _checks_order.check_bag_order,
            _checks_order.check_instance_order,
            _checks_order.check_scores_are_independent,
            _checks_fit.check_bad_parameter_refused,
            _checks_fit.check_scoring_changes_no_state,
            _checks_fit.check_pickle,
            _checks_fit.check_deepcopy,
            _checks_fit.check_clone,
            _checks_fit.check_fit_is_repeatable,
            _checks_fit.check_refit_equals_fresh_fit,
            _checks_fit.check_thread_count,
            _checks_fit.check_interrupted_first_fit,
            _checks_fit.check_interrupted_refit,
            _checks_fit.check_failing_first_fit,
            _checks_fit.check_failing_refit,
            _checks_fit.check_refused_refit,
            _checks_extremes.check_one_instance_bags,
            _checks_extremes.check_one_feature,
            _checks_extremes.check_constant_features,
            _checks_extremes.check_identical_instances,
            _checks_extremes.check_duplicate_bags,
            _checks_extremes.check_huge_bag,
            _checks_extremes.check_feature_scale,
            _checks_extremes.check_shifted_features,
            _checks_extremes.check_far_bags,
            _checks_ecosystem.check_train_test_split,
        ),
    ),
    (_needs_no_arguments, (_checks_fit.check_default_constructible,)),
    (_takes_sparse, (_checks_input.check_sparse_agrees, _checks_fit.check_refit_after_sparse)),
    (_takes_jobs, (_checks_fit.check_n_jobs,)),
    (_has_analogue, (_checks_input.check_supervised_analogue,)),
    (
        is_bag_classifier,
        (
            _checks_input.check_label_count_refused,
            _checks_labels.check_learns,
            _checks_labels.check_label_types,
            _checks_labels.check_scores_follow_classes,
            _checks_labels.check_many_classes,
            _checks_labels.check_unseen_label_in_score,
            _checks_labels.check_one_class_refused,
            _checks_labels.check_continuous_labels_refused,
            _checks_labels.check_class_with_one_bag,
            _checks_positive.check_asymmetry,
            _checks_positive.check_constant_model_warns,
            _checks_ecosystem.check_cross_validation,
            _checks_ecosystem.check_grid_search,
            _checks_ecosystem.check_calibration,
        ),
    ),
    (takes_label_lists, (_checks_labels.check_label_lists,)),
    (_labels_share_instances, (_checks_labels.check_constant_label,)),
    (
        _is_asymmetric,
        (
            _checks_positive.check_positive_class,
            _checks_positive.check_pos_label_refused,
            _checks_positive.check_guessed_class_warns,
        ),
    ),
    (
        is_bag_clusterer,
        (
            _checks_clusters.check_clusters_found,
            _checks_clusters.check_cluster_labels,
            _checks_clusters.check_fit_predict,
            _checks_clusters.check_predict_by_scores,
            _checks_clusters.check_target_ignored,
            _checks_clusters.check_cluster_count_refused,
            _checks_clusters.check_extreme_cluster_counts,
            _checks_clusters.check_cluster_names,
            _checks_clusters.check_cluster_count_is_that_of_fit,
        ),
    ),
    (_predicts_training_labels, (_checks_clusters.check_predict_repeats_labels,)),
    (_clusters_by_outstanding_instance, (_checks_clusters.check_concepts_found,)),
    (_descends, (_checks_clusters.check_objective_descends,)),
    (_has_key_instances, (_checks_clusters.check_key_instances_of_fit,)),
    (_learns, (_checks_certificate.check_certificate, _checks_ecosystem.check_pipeline)),
    (_starts_from_values, (_checks_order.check_ties,)),
    (_sees_no_units, (_checks_invariance.check_feature_units,)),
    (_sees_no_origin, (_checks_invariance.check_feature_origin,)),
    (_sees_differences, (_checks_invariance.check_feature_order,)),
    (_transforms, (_checks_ecosystem.check_output_setting,)),
    (
        _iterates,
        (_checks_certificate.check_not_converged_warns, _checks_certificate.check_early_stops),
    ),
    (
        _takes_weights,
        (
            _checks_weights.check_weight_is_repetition,
            _checks_weights.check_zero_weight_is_removal,
            _checks_weights.check_uniform_weight,
            _checks_weights.check_bad_weight_refused,
        ),
    ),
    (
        _takes_class_weights,
        (
            _checks_weights.check_class_weight_dict,
            _checks_weights.check_class_weight_balanced,
            _checks_weights.check_class_weight_refused,
        ),
    ),
    (
        _scores_instances,
        (
            _checks_instances.check_instance_scores,
            _checks_instances.check_instance_order_permutes_scores,
            _checks_instances.check_key_instances,
        ),
    ),
    (_scores_by_best_instance, (_checks_instances.check_max_rule,)),
    (_scores_bags_only, (_checks_instances.check_instance_scores_refused,)),
    (is_own, (_checks_ecosystem.check_save_and_load, _checks_ecosystem.check_docstring)),
)


#: Checks of the class, which hold for all of its parameters or for none: what is refused, how
#: labels and containers are read, that a fit is done wholly or not at all, that tools work.
_OF_THE_CLASS: frozenset[Check] = frozenset(
    {
        _checks_input.check_sequences_agree,
        _checks_input.check_cube_agrees,
        _checks_input.check_integers_agree,
        _checks_input.check_rows_are_bags_of_one,
        _checks_input.check_feature_names,
        _checks_input.check_frame_names,
        _checks_input.check_wrong_width_refused,
        _checks_input.check_nonfinite_refused,
        _checks_input.check_empty_bag_refused,
        _checks_input.check_ragged_bags_refused,
        _checks_input.check_text_refused,
        _checks_input.check_label_count_refused,
        _checks_fit.check_default_constructible,
        _checks_fit.check_bad_parameter_refused,
        _checks_fit.check_deepcopy,
        _checks_fit.check_clone,
        _checks_fit.check_interrupted_first_fit,
        _checks_fit.check_interrupted_refit,
        _checks_fit.check_failing_first_fit,
        _checks_fit.check_failing_refit,
        _checks_fit.check_refused_refit,
        _checks_labels.check_label_types,
        _checks_labels.check_scores_follow_classes,
        _checks_labels.check_many_classes,
        _checks_labels.check_unseen_label_in_score,
        _checks_labels.check_one_class_refused,
        _checks_labels.check_continuous_labels_refused,
        _checks_positive.check_pos_label_refused,
        _checks_positive.check_guessed_class_warns,
        _checks_positive.check_constant_model_warns,
        _checks_ecosystem.check_train_test_split,
        _checks_ecosystem.check_cross_validation,
        _checks_ecosystem.check_grid_search,
        _checks_ecosystem.check_calibration,
        _checks_ecosystem.check_pipeline,
        _checks_ecosystem.check_output_setting,
        _checks_ecosystem.check_docstring,
        _checks_clusters.check_fit_predict,
        _checks_clusters.check_target_ignored,
        _checks_clusters.check_cluster_count_refused,
        _checks_clusters.check_cluster_names,
        _checks_clusters.check_cluster_count_is_that_of_fit,
        _checks_weights.check_bad_weight_refused,
        _checks_weights.check_class_weight_refused,
    }
)


def yield_bag_checks(estimator: Any, *, of_the_class: bool = True) -> Iterator[tuple[str, Check]]:
    """Yield the name of each check that applies to an estimator, and the check itself.

    Parameters
    ----------
    estimator : estimator
        An instance. Which checks apply depends on what it is, takes and says in its tags.
    of_the_class : bool
        Whether to yield the checks whose outcome parameters cannot change.

    Yields
    ------
    name : str
        Name of the check.
    check : callable
        To be called with the estimator, which it clones; raises if the estimator fails.
    """
    for applies, checks in _BATTERY:
        if applies(estimator):
            for check in checks:
                if of_the_class or check not in _OF_THE_CLASS:
                    yield check.__name__, check


def check_bag_estimator(
    estimator: Any, *, expected_failures: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Hold an estimator to the contract of bag estimators.

    It is the complement of scikit-learn's ``check_estimator``, which looks at bags of one instance.

    Parameters
    ----------
    estimator : estimator
        An instance; it is cloned and not changed.
    expected_failures : mapping of str to str, optional
        Name of a check -> the reason why it cannot hold. These checks must fail: one that passes is
        an error too, so that the list does not outlive its reasons.

    Returns
    -------
    outcomes : dict of str to str
        What became of each check: ``"passed"``, or why it was skipped or expected to fail.

    Raises
    ------
    AssertionError
        At the first check that fails; the message says which, and why.

    Examples
    --------
    >>> from bagwise.svm import SIL
    >>> from bagwise.testing import check_bag_estimator
    >>> outcomes = check_bag_estimator(SIL(C=10.0))  # doctest: +SKIP
    """
    name = type(estimator).__name__
    checks = dict(yield_bag_checks(estimator))
    expected = _known_failures(estimator, checks, expected_failures)
    outcomes = {}
    for check_name, check in checks.items():
        try:
            check(estimator)
        except SkipTest as skipped:
            outcomes[check_name] = f"skipped: {skipped}"
        except Exception as error:
            if check_name not in expected:
                msg = f"{name} fails {check_name}: {error}"
                raise AssertionError(msg) from error
            outcomes[check_name] = f"expected failure: {expected[check_name]}"
        else:
            if check_name in expected:
                msg = f"{name} passes {check_name}: take it out of expected_failures."
                raise AssertionError(msg)
            outcomes[check_name] = "passed"
    return outcomes


def parametrize_with_bag_checks(
    estimators: Sequence[Any],
    *,
    variants: Sequence[Any] = (),
    expected_failures: Callable[[Any], Mapping[str, str] | None] | None = None,
) -> Any:
    """Return a pytest decorator that runs each check on each estimator as a test of its own.

    Parameters
    ----------
    estimators : sequence of estimators
        Instances.
    variants : sequence of estimators
        Instances of the same classes with other parameters. They get only the checks whose outcome
        parameters can change.
    expected_failures : callable, optional
        Takes an estimator and returns what ``expected_failures`` of `check_bag_estimator` is.

    Returns
    -------
    decorator : pytest.MarkDecorator
        For a test function with the arguments ``estimator`` and ``check``.

    Examples
    --------
    >>> from bagwise.svm import SIL
    >>> from bagwise.testing import parametrize_with_bag_checks
    >>> @parametrize_with_bag_checks([SIL()], variants=[SIL(kernel="linear")])
    ... def test_bag_checks(estimator, check):
    ...     check(estimator)
    """
    import pytest

    params = []
    for number, estimator in enumerate([*estimators, *variants]):
        checks = dict(yield_bag_checks(estimator, of_the_class=number < len(estimators)))
        given = None if expected_failures is None else expected_failures(estimator)
        expected = _known_failures(estimator, checks, given)
        shown = "".join(repr(estimator).split())
        for name, check in checks.items():
            marks = []
            if name in expected:
                marks.append(pytest.mark.xfail(reason=expected[name], strict=True))
            params.append(pytest.param(estimator, check, id=f"{shown}-{name}", marks=marks))
    return pytest.mark.parametrize(("estimator", "check"), params)


def _known_failures(
    estimator: Any, checks: Mapping[str, Check], expected: Mapping[str, str] | None
) -> Mapping[str, str]:
    expected = {} if expected is None else expected
    if unknown := sorted(expected.keys() - checks.keys()):
        msg = (
            f"expected_failures of {type(estimator).__name__} must name checks that apply to it. "
            f"Got {unknown}."
        )
        raise ValueError(msg)
    return expected
