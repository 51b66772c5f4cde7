"""Estimators that break the contract in one place each, by the check that must see it."""

import copy
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from bagwise import Bags
from bagwise._threads import thread_count
from bagwise.bags import segment_argmax, segment_max
from bagwise.base import BagTags
from bagwise.base._target import Target
from bagwise.base._validation import as_bags
from bagwise.exceptions import ModelFileError
from bagwise.solvers import Certificate, Status
from testing.sound import BagsOnly, NearestMean, UnitFree


class Broken(dict):
    """Name of a check -> the estimators that it must catch: class, parameters, error."""

    def caught_by(self, *names, error=AssertionError, **params):
        """Register a class as broken in a way that these checks must see.

        What the estimator itself raises comes through a check as it is.
        """

        def register(cls):
            for name in names:
                self.setdefault(name, []).append((cls, params, error))
            return cls

        return register


BROKEN = Broken()
caught_by = BROKEN.caught_by


# -------------------------------------------------------------------------------------- input


class ChangesInput(NearestMean):
    def change(self, X):
        return X

    def fit(self, X, y, sample_weight=None):
        return super().fit(self.change(X), y, sample_weight)

    def _validated(self, X):
        return super()._validated(self.change(X))


def is_list(X):
    return isinstance(X, list) and not np.isscalar(X[0][0])


@caught_by("check_sequences_agree")
class RoundsTuples(ChangesInput):
    def change(self, X):
        return tuple(np.round(bag, 2) for bag in X) if isinstance(X, tuple) else X


@caught_by("check_sequences_agree", error=TypeError)
class RefusesObjectArrays(ChangesInput):
    def change(self, X):
        if isinstance(X, np.ndarray) and X.dtype == object:
            raise TypeError("not this")
        return X


@caught_by("check_cube_agrees")
class AveragesCubes(ChangesInput):
    def change(self, X):
        return X.mean(axis=1) if isinstance(X, np.ndarray) and X.ndim == 3 else X


@caught_by("check_integers_agree")
class DividesIntegers(ChangesInput):
    def change(self, X):
        return [bag // 2 if bag.dtype.kind == "i" else bag for bag in X] if is_list(X) else X


@caught_by("check_sparse_agrees")
class ScalesSparse(NearestMean):
    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        return coef * (1.01 if bags.is_sparse else 1.0), intercept


@caught_by("check_memory_map_agrees")
class RoundsMaps(NearestMean):
    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        return coef * (1 + 1e-15 if bags.is_memory_mapped else 1.0), intercept


@caught_by("check_lazy_agrees")
class SkipsTransforms(NearestMean):
    def _means(self, bags, sign, weight):
        if bags.is_lazy:
            bags = Bags(bags._base.inner, bags.offsets)
        return super()._means(bags, sign, weight)


@caught_by("check_selection_agrees", "check_train_test_split")
class ForgetsSelection(NearestMean):
    def _means(self, bags, sign, weight):
        rows = bags._base[: bags.n_instances]
        return super()._means(Bags(rows, bags.offsets), sign, weight)


@caught_by("check_rows_are_bags_of_one")
class CentresMatrices(ChangesInput):
    def change(self, X):
        return X - X.mean(axis=0) if isinstance(X, np.ndarray) and X.ndim == 2 else X


@caught_by("check_supervised_analogue")
class ClaimsToBeSVC(NearestMean):
    def __bagwise_tags__(self):
        return BagTags(supervised_analogue=SVC())


@caught_by("check_input_unchanged")
class CentresInPlace(ChangesInput):
    def change(self, X):
        if is_list(X) and isinstance(X[0], np.ndarray):
            X[0] -= 0.5
        return X


@caught_by("check_input_unchanged")
class SortsLabels(NearestMean):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        y[::-1].sort()
        return self


@caught_by("check_float32", error=TypeError)
class CrashesOnFloat32(NearestMean):
    def _learn(self, bags, target, cost_weight, bag_weight):
        if bags.dtype == np.float32:
            raise TypeError("No matching definition for argument type(s) array(float32, 2d, C)")
        return super()._learn(bags, target, cost_weight, bag_weight)


@caught_by("check_float32")
class LosesFloat32(NearestMean):
    def _bag_outputs(self, bags):
        return super()._bag_outputs(bags) * (np.nan if bags.dtype == np.float32 else 1.0)


@caught_by("check_feature_names")
class IgnoresNames(NearestMean):
    def _validated(self, X):
        return super()._validated(Bags(X.instances, X.offsets) if isinstance(X, Bags) else X)


@caught_by("check_feature_names")
class DropsNames(ChangesInput):
    def change(self, X):
        return Bags(X.instances, X.offsets) if isinstance(X, Bags) else X


@caught_by("check_frame_names")
class IgnoresFrames(ChangesInput):
    def change(self, X):
        return X.to_numpy() if hasattr(X, "to_numpy") else X


@caught_by("check_wrong_width_refused")
class CutsColumns(NearestMean):
    def _validated(self, X):
        is_long = is_list(X) and len(X[0][0]) > self.n_features_in_
        return super()._validated([bag[:, : self.n_features_in_] for bag in X] if is_long else X)


@caught_by("check_nonfinite_refused")
class FillsMissing(ChangesInput):
    def change(self, X):
        return [np.nan_to_num(bag) for bag in X] if is_list(X) else X


@caught_by("check_nonfinite_refused")
class FillsMissingWhereAllowed(ChangesInput):
    def change(self, X):
        marked = isinstance(X, Bags) and X.allow_nan
        return X.map_instances(np.nan_to_num) if marked else X


@caught_by("check_nonfinite_refused")
class DoesNotNameTheBag(NearestMean):
    def _validated(self, X):
        try:
            return super()._validated(X)
        except ValueError:
            raise ValueError("Input contains NaN.") from None


@caught_by("check_empty_bag_refused")
class FillsEmptyBags(ChangesInput):
    def change(self, X):
        return [bag if len(bag) else np.zeros((1, 3)) for bag in X] if X and is_list(X) else X


@caught_by("check_ragged_bags_refused")
class CutsRaggedBags(ChangesInput):
    def change(self, X):
        if not is_list(X):
            return X
        width = min(np.shape(bag)[1] for bag in X)
        return [bag[:, :width] for bag in X]


@caught_by("check_text_refused")
class ReadsTextAsZero(ChangesInput):
    def change(self, X):
        if not is_list(X):
            return X
        return [[[0.0 if isinstance(v, str) else v for v in row] for row in bag] for bag in X]


@caught_by("check_label_count_refused")
class CutsLabels(NearestMean):
    def fit(self, X, y, sample_weight=None):
        n = min(len(X), len(y))
        return super().fit(X[:n], y[:n], sample_weight)


# -------------------------------------------------------------------------------------- order


@caught_by("check_bag_order")
class PrefersFirstBag(NearestMean):
    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        return coef, intercept + 0.001 * bags[0].mean()


@caught_by("check_instance_order")
class LooksAtFirstInstances(NearestMean):
    def _means(self, bags, sign, weight):
        first = bags.instances[bags.offsets[:-1]]
        return super()._means(Bags(first, np.arange(len(bags) + 1)), sign, weight)


@caught_by("check_bag_order")
class UnderstatesOrder(NearestMean):
    """Says that the objective varies by 1e-6 and lets it vary by more."""

    def _learn(self, bags, target, cost_weight, bag_weight):
        learned = super()._learn(bags, target, cost_weight, bag_weight)
        learned["result_"] = self._certificate(1.0 + 1e-4 * bags[0].mean())
        return learned

    def __bagwise_tags__(self):
        return BagTags(order_tolerance=1e-6)


@caught_by("check_ties")
class TakesTheFirstOfEquals(NearestMean):
    """Learns from the instance of each bag with the largest first feature."""

    def _means(self, bags, sign, weight):
        first = bags.instances[:, 0]
        keys = segment_argmax(first, bags.offsets[:-1], bags.offsets[1:]) + bags.offsets[:-1]
        return super()._means(Bags(bags.instances[keys], np.arange(len(bags) + 1)), sign, weight)


@caught_by("check_ties")
class RanksRounding(NearestMean):
    """Learns most from the bags that come first, of those whose first instances are as long."""

    def _means(self, bags, sign, weight):
        lengths = np.linalg.norm(bags.instances, axis=1)
        longest = segment_max(lengths, bags.offsets[:-1], bags.offsets[1:])
        rank = np.argsort(np.argsort(longest, kind="stable"))
        return super()._means(bags, sign, weight * (1.0 + 0.01 * rank))


@caught_by("check_scores_are_independent")
class CentresScores(NearestMean):
    def decision_function(self, X):
        scores = super().decision_function(X)
        return scores - scores.mean()


@caught_by("check_scores_are_independent")
class CountsItsCompany(NearestMean):
    """Says a little more of a bag in company, by no more than a solver's tolerance."""

    def decision_function(self, X):
        scores = super().decision_function(X)
        return scores + 1e-6 * (len(scores) > 1)


@caught_by("check_scores_are_independent")
class MovesToTheMiddle(NearestMean):
    """Computes with distances from the mean of all that is scored."""

    def _bag_outputs(self, bags):
        middle = bags.instances.mean(axis=0)
        return super()._bag_outputs(Bags((bags.instances - middle) + middle, bags.offsets))


# --------------------------------------------------------------------------- units and origin


@caught_by("check_feature_units")
class AddsJitter(UnitFree):
    """Adds a small number to what is divided by, whatever the features are measured in."""

    def _in_units(self, coef, middle, square, prior):
        return super()._in_units(coef, middle, square + 1e-4, prior)


@caught_by("check_feature_units")
class ForgetsAPower(NearestMean):
    def __bagwise_tags__(self):
        return BagTags(scale_powers={})


@caught_by("check_feature_origin")
class ShrinksToZero(UnitFree):
    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        return coef, 0.99 * intercept


@caught_by("check_feature_order")
class PrefersFirstFeature(UnitFree):
    """Halves the weight of the first feature, and says nothing about it to the intercept."""

    def _in_units(self, coef, middle, square, prior):
        return super()._in_units(np.append(0.5 * coef[0], coef[1:]), middle, square, prior)


# ---------------------------------------------------------------------------------------- fit


@caught_by("check_default_constructible", shift=1.0)
class NeedsAnArgument(NearestMean):
    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    @classmethod
    def _get_param_names(cls):
        return ["shift"]


@caught_by("check_bad_parameter_refused")
class TrustsParameters(NearestMean):
    def _validate_params(self):
        pass


@caught_by("check_scoring_changes_no_state")
class CountsPredictions(NearestMean):
    def predict(self, X):
        self.n_predictions_ = getattr(self, "n_predictions_", 0) + 1
        return super().predict(X)


@caught_by("check_scoring_changes_no_state")
class ChangesArrayInPlace(NearestMean):
    def key_instances(self, X):
        keys = super().key_instances(X)
        self.coef_[0, 0] = np.nextafter(self.coef_[0, 0], np.inf)
        return keys


@caught_by("check_scoring_changes_no_state")
class AnswersDifferently(NearestMean):
    def decision_function(self, X):
        return super().decision_function(X) + np.random.default_rng().normal()


@caught_by("check_pickle")
class LosesBitsInPickle(NearestMean):
    def __getstate__(self):
        state = super().__getstate__().copy()
        return {**state, "coef_": state["coef_"].astype(np.float32)}


@caught_by("check_pickle", error=TypeError)
class CannotBePickled(NearestMean):
    def __reduce__(self):
        raise TypeError("cannot pickle")


@caught_by("check_deepcopy")
class SharesCopies(NearestMean):
    def __deepcopy__(self, memo):
        twin = copy.copy(self)
        twin.intercept_ = self.intercept_ + 1.0
        return twin


@caught_by("check_clone")
class ClonesItsFit(NearestMean):
    def __sklearn_clone__(self):
        return copy.deepcopy(self)


@caught_by("check_fit_is_repeatable")
class HasNoSeed(NearestMean):
    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        return coef, intercept + 1e-12 * np.random.default_rng().normal()


@caught_by("check_refit_equals_fresh_fit")
class StartsFromLastFit(NearestMean):
    def fit(self, X, y, sample_weight=None):
        n_fits = getattr(self, "n_fits_", 0)
        super().fit(X, y, sample_weight)
        self.n_fits_ = n_fits + 1
        return self


@caught_by("check_refit_equals_fresh_fit")
class KeepsNames(NearestMean):
    def fit(self, X, y, sample_weight=None):
        names = getattr(self, "feature_names_in_", None)
        super().fit(X, y, sample_weight)
        if names is not None:
            self.feature_names_in_ = names
        return self


@caught_by("check_refit_after_sparse")
class RemembersSparse(NearestMean):
    def fit(self, X, y, sample_weight=None):
        was_sparse = hasattr(self, "was_sparse_") or as_bags(X).is_sparse
        super().fit(X, y, sample_weight)
        if was_sparse:
            self.was_sparse_ = True
        return self


@caught_by("check_n_jobs")
class DependsOnJobs(NearestMean):
    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        return coef, intercept + 1e-12 * (self.n_jobs or 1)


@caught_by("check_thread_count")
class DependsOnThreads(NearestMean):
    def _learn(self, bags, target, cost_weight, bag_weight):
        learned = super()._learn(bags, target, cost_weight, bag_weight)
        return {**learned, "intercept_": learned["intercept_"] + 1e-12 * thread_count()}


CUT_CHECKS = (
    "check_interrupted_first_fit",
    "check_interrupted_refit",
    "check_failing_first_fit",
    "check_failing_refit",
)


@caught_by(*CUT_CHECKS)
class SetsAttributesOneByOne(NearestMean):
    """Does all the work first; what is left unguarded is only the setting of attributes."""

    def fit(self, X, y, sample_weight=None):
        other = NearestMean(**self.get_params()).fit(X, y, sample_weight)
        for name, value in vars(other).items():
            setattr(self, name, value)
        return self


@caught_by(*CUT_CHECKS)
class ForgetsBeforeItLearns(NearestMean):
    """Clears the last fit, then looks at the data; the new attributes come at once."""

    def fit(self, X, y, sample_weight=None):
        for name in [name for name in vars(self) if name.endswith("_")]:
            del vars(self)[name]
        vars(self)["begun_"] = True
        learned = NearestMean(**self.get_params()).fit(X, y, sample_weight)
        vars(self).update(vars(learned))
        return self


@caught_by("check_failing_first_fit", "check_failing_refit")
class SwallowsErrors(NearestMean):
    def fit(self, X, y, sample_weight=None):
        try:
            return super().fit(X, y, sample_weight)
        except MemoryError:
            return self


@caught_by("check_refused_refit")
class SetsWidthFirst(NearestMean):
    def fit(self, X, y, sample_weight=None):
        if is_list(X):
            self.n_features_in_ = np.shape(X[0])[1]
        return super().fit(X, y, sample_weight)


# ------------------------------------------------------------------------------------- labels


@caught_by("check_learns")
class LearnsNothing(NearestMean):
    def _means(self, bags, sign, weight):
        return np.zeros(bags.n_features), 1.0


@caught_by("check_learns")
class PredictsTheOther(NearestMean):
    def predict(self, X):
        return self.classes_[::-1][np.searchsorted(self.classes_, super().predict(X))]


@caught_by("check_label_types")
class ReturnsCodes(NearestMean):
    def predict(self, X):
        return np.searchsorted(self.classes_, super().predict(X))


@caught_by("check_label_types", error=ValueError)
class WantsNumbers(NearestMean):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, np.asarray(y, dtype=float), sample_weight)


@caught_by("check_scores_follow_classes")
class ForgetsTheOrderOfClasses(NearestMean):
    """Lists the classes as they first appear."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_ = np.asarray(list(dict.fromkeys(np.asarray(y).tolist())))
        return self


@caught_by("check_many_classes")
class ReversesColumns(NearestMean):
    def decision_function(self, X):
        scores = super().decision_function(X)
        return scores[:, [2, 1, 0, 3, 4]] if scores.shape[1:] == (5,) else scores


@caught_by("check_label_lists")
class RanksBackwards(NearestMean):
    def decision_function(self, X):
        scores = super().decision_function(X)
        return scores * [1.0, -1.0, 1.0] if self.multilabel_ else scores


@caught_by("check_constant_label")
class NeedsBothSides(NearestMean):
    def _means(self, bags, sign, weight):
        if (sign == sign[0]).all():
            return np.zeros(bags.n_features), np.nan
        return super()._means(bags, sign, weight)


@caught_by("check_constant_label")
class IsWrongAboutConstants(NearestMean):
    def _means(self, bags, sign, weight):
        if (sign == sign[0]).all():
            return np.zeros(bags.n_features), 1.0
        return super()._means(bags, sign, weight)


@caught_by("check_unseen_label_in_score", error=ValueError)
class RefusesUnseenLabels(NearestMean):
    def score(self, X, y, sample_weight=None):
        if not np.isin(y, self.classes_).all():
            raise ValueError("y contains previously unseen labels")
        return super().score(X, y, sample_weight)


@caught_by("check_unseen_label_in_score")
class IgnoresUnseenLabels(NearestMean):
    def score(self, X, y, sample_weight=None):
        known = np.flatnonzero(np.isin(y, self.classes_))
        return super().score([X[i] for i in known], y[known])


@caught_by("check_one_class_refused")
class AcceptsOneClass(NearestMean):
    def fit(self, X, y, sample_weight=None):
        y = np.array(y)
        if len(set(y.tolist())) == 1:
            X, y = [*X, *X], np.append(y, y + 1)
        return super().fit(X, y, sample_weight)


@caught_by("check_continuous_labels_refused")
class RoundsLabels(NearestMean):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, np.nan_to_num(np.round(y)), sample_weight)


@caught_by("check_class_with_one_bag")
class NeedsTwoBagsPerClass(NearestMean):
    def _means(self, bags, sign, weight):
        if min((sign > 0).sum(), (sign < 0).sum()) == 1:
            return np.full(bags.n_features, np.nan), 0.0
        return super()._means(bags, sign, weight)


# ------------------------------------------------------------------------------- odd data


class Fragile(NearestMean):
    """Has NaN for scores on some kind of bags."""

    def is_too_much(self, bags):
        return False

    def _bag_outputs(self, bags):
        return super()._bag_outputs(bags) * (np.nan if self.is_too_much(bags) else 1.0)


@caught_by("check_one_instance_bags")
class NeedsTwoInstances(Fragile):
    def is_too_much(self, bags):
        return (bags.sizes == 1).all()


@caught_by("check_one_feature")
class NeedsTwoFeatures(Fragile):
    def is_too_much(self, bags):
        return bags.n_features == 1


@caught_by("check_constant_features")
class DividesByVariance(Fragile):
    def is_too_much(self, bags):
        return (np.ptp(bags.instances, axis=0) == 0).any()


@caught_by("check_identical_instances")
class CountsBags(NearestMean):
    def _bag_outputs(self, bags):
        return super()._bag_outputs(bags) + 0.01 * np.arange(len(bags))[:, None]


@caught_by("check_duplicate_bags")
class NeedsDifferentBags(Fragile):
    def is_too_much(self, bags):
        return len({bag.tobytes() for bag in bags}) < len(bags)


@caught_by("check_huge_bag")
class NeedsSmallBags(Fragile):
    def is_too_much(self, bags):
        return bags.sizes.max() > 100


@caught_by("check_feature_scale")
class NeedsSmallFeatures(Fragile):
    def is_too_much(self, bags):
        return np.abs(bags.instances).max() > 1e10


@caught_by("check_shifted_features")
class NeedsCentredFeatures(Fragile):
    def is_too_much(self, bags):
        return 1e4 < np.abs(bags.instances.mean()) < 1e6


@caught_by("check_far_bags")
class Extrapolates(Fragile):
    def is_too_much(self, bags):
        return 1e7 < np.abs(bags.instances).max() < 1e9


# -------------------------------------------------------------------------------- certificate


@caught_by("check_certificate")
class HasNoCertificate(NearestMean):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.result_ = Converged()
        return self


class Converged:
    converged = True


class OtherCertificate(NearestMean):
    changes = {}  # noqa: RUF012

    def _certificate(self, objective):
        known = {"objective": objective, "status": Status.CONVERGED, "n_iter": 1}
        return Certificate(**{**known, **self.changes})


@caught_by("check_certificate")
class HasNoObjective(OtherCertificate):
    changes = {"objective": np.nan}  # noqa: RUF012


@caught_by("check_certificate")
class HasNegativeGap(OtherCertificate):
    changes = {"lower_bound": 1e6}  # noqa: RUF012


@caught_by("check_certificate")
class CountsBackwards(OtherCertificate):
    changes = {"n_iter": -1}  # noqa: RUF012


@caught_by("check_certificate")
class NeverConverges(OtherCertificate):
    changes = {"status": Status.MAX_ITER}  # noqa: RUF012


@caught_by("check_not_converged_warns")
class ConvergesAlways(NearestMean):
    def _certificate(self, objective):
        return Certificate(objective=objective, status=Status.CONVERGED, n_iter=1)


@caught_by("check_not_converged_warns")
class GivesNoAdvice(NearestMean):
    _convergence_advice = "be patient"


@caught_by("check_not_converged_warns")
class GetsWorse(NearestMean):
    def _certificate(self, objective):
        certificate = super()._certificate(objective)
        return Certificate(
            objective=float(self.max_iter), status=certificate.status, n_iter=certificate.n_iter
        )


@caught_by("check_early_stops")
class BoundsFromAbove(NearestMean):
    """The bound of a fit with few iterations is above what more iterations reach."""

    def _certificate(self, objective):
        certificate = super()._certificate(objective)
        return replace(
            certificate, objective=objective + 2.0 / self.max_iter, lower_bound=objective
            + 1.0 / self.max_iter,
        )  # fmt: skip


@caught_by("check_early_stops")
class WarnsNever(NearestMean):
    def fit(self, X, y, sample_weight=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().fit(X, y, sample_weight)


@caught_by("check_early_stops")
class WarnsAlways(NearestMean):
    def fit(self, X, y, sample_weight=None):
        warnings.warn("WarnsAlways did not converge.", ConvergenceWarning, stacklevel=2)
        return super().fit(X, y, sample_weight)


# ------------------------------------------------------------------------------------ weights


@caught_by("check_weight_is_repetition")
class SquaresWeights(NearestMean):
    def _means(self, bags, sign, weight):
        return super()._means(bags, sign, weight**2)


@caught_by("check_weight_is_repetition")
class IgnoresWeights(NearestMean):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


@caught_by("check_weight_is_repetition")
class CountsEqualBagsOnce(NearestMean):
    """Neither weights nor repetitions make a difference."""

    def fit(self, X, y, sample_weight=None):
        last = {bag.tobytes(): place for place, bag in enumerate(X)}
        places = sorted(last.values())
        return super().fit([X[place] for place in places], np.asarray(y)[places])


@caught_by("check_zero_weight_is_removal")
class KeepsWeightless(NearestMean):
    def fit(self, X, y, sample_weight=None):
        weight = None if sample_weight is None else np.maximum(sample_weight, 1e-3)
        return super().fit(X, y, weight)


@caught_by("check_zero_weight_is_removal")
class KeepsWeightlessClasses(NearestMean):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if not self.multilabel_:
            self.classes_ = np.unique(y)
        return self


@caught_by("check_uniform_weight")
class AddsWeights(NearestMean):
    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        return coef, intercept + 0.01 * weight.max()


@caught_by("check_bad_weight_refused")
class TakesAbsoluteWeights(NearestMean):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, None if sample_weight is None else np.abs(sample_weight))


class OtherClassWeight(NearestMean):
    def weigh(self, target):
        return 1.0

    def _learn(self, bags, target, cost_weight, bag_weight):
        weight = np.broadcast_to(bag_weight[:, None] * self.weigh(target), target.signs.shape)
        return super()._learn(bags, target, weight, bag_weight)


@caught_by("check_class_weight_dict")
class IgnoresClassWeights(OtherClassWeight):
    pass


@caught_by("check_class_weight_dict")
class ReversesClassWeights(OtherClassWeight):
    def weigh(self, target: Target):
        if not isinstance(self.class_weight, dict):
            return 1.0
        weights = np.array([self.class_weight[label] for label in target.classes])
        return weights[::-1][target.codes][:, None]


class BalancesOtherwise(OtherClassWeight):
    """Knows a dict, and does not balance label lists."""

    def weigh(self, target):
        if target.codes is None:
            return 1.0
        if isinstance(self.class_weight, dict):
            weights = np.array([self.class_weight[label] for label in target.classes])
            return weights[target.codes][:, None]
        return self.balance(np.bincount(target.codes))[target.codes][:, None]

    def balance(self, counts):
        return counts.sum() / (len(counts) * counts)


@caught_by("check_class_weight_balanced")
class BalancesByRoot(BalancesOtherwise):
    def balance(self, counts):
        return 1.0 / np.sqrt(counts)


@caught_by("check_class_weight_balanced")
class BalancesClassesOnly(BalancesOtherwise):
    pass


@caught_by("check_class_weight_refused")
class AcceptsAnyClassWeights(NearestMean):
    def fit(self, X, y, sample_weight=None):
        class_weight, self.class_weight = self.class_weight, None
        super().fit(X, y, sample_weight)
        self.class_weight = class_weight
        return self


# ---------------------------------------------------------------------------------- instances


@caught_by("check_instance_scores")
class ScoresBagsAsInstances(NearestMean):
    def instance_decision_function(self, X):
        return self.decision_function(X)


@caught_by("check_instance_scores")
class LabelsInstancesByBag(NearestMean):
    def instance_predict(self, X):
        return np.repeat(self.predict(X), self._validated(X).sizes, axis=0)


@caught_by("check_instance_order_permutes_scores")
class ScoresByPlace(NearestMean):
    def _instance_outputs(self, bags):
        place = np.concatenate([np.arange(size) for size in bags.sizes])
        return super()._instance_outputs(bags) + 0.01 * place[:, None]


@caught_by("check_max_rule", rule="mean")
class ClaimsMaxRule(NearestMean):
    def __bagwise_tags__(self):
        return BagTags(max_rule=True)


@caught_by("check_key_instances")
class TakesTheLastOfEquals(NearestMean):
    def key_instances(self, X):
        return (self._validated(X).sizes - 1 - super().key_instances([b[::-1] for b in X]).T).T


@caught_by("check_key_instances")
class CountsOverAllBags(NearestMean):
    def key_instances(self, X):
        return (super().key_instances(X).T + self._validated(X).offsets[:-1]).T


@caught_by("check_key_instances")
class AlwaysSeeksPositive(NearestMean):
    def key_instances(self, X):
        scores = self._instance_outputs(self._validated(X))[:, 0]
        offsets = self._validated(X).offsets
        return np.array([scores[a:b].argmax() for a, b in pairwise(offsets)])


@caught_by("check_instance_scores_refused")
class ScoresInstancesAnyway(BagsOnly):
    def instance_decision_function(self, X):
        return np.zeros(Bags.from_list(X).n_instances)


# ---------------------------------------------------------------------------------- ecosystem


@caught_by(
    "check_cross_validation",
    "check_train_test_split",
    "check_grid_search",
    "check_pipeline",
    "check_calibration",
    error=TypeError,
)
class RefusesBags(ChangesInput):
    def change(self, X):
        if isinstance(X, Bags):
            raise TypeError("a list, please")
        return X


@caught_by("check_cross_validation")
class DependsOnContainer(NearestMean):
    def predict(self, X):
        labels = super().predict(X)
        return np.full_like(labels, labels[0]) if isinstance(X, Bags) else labels


@caught_by("check_calibration")
class HasFlatScores(NearestMean):
    def decision_function(self, X):
        return np.zeros_like(super().decision_function(X))


@caught_by("check_pipeline")
class IgnoresScaling(ChangesInput):
    def change(self, X):
        return [np.tanh(bag) for bag in X] if is_list(X) else X


@caught_by("check_grid_search")
class ChangesOnRefit(NearestMean):
    calls = 0

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        type(self).calls += 1
        self.intercept_ += 1e-9 * type(self).calls
        return self


@caught_by("check_output_setting", error=TypeError)
class LetsSklearnWrapBags(TransformerMixin, NearestMean):
    def transform(self, X):
        return self._validated(X).map_instances(lambda rows: rows @ self.coef_.T)

    def get_feature_names_out(self, input_features=None):
        return ["score"]


@caught_by("check_save_and_load", error=ModelFileError)
class IsNotInTheRegistry(NearestMean):
    pass


@caught_by("check_docstring")
class HasNoDocstring(NearestMean):
    __doc__ = None


@caught_by("check_docstring")
class HasOnlySections(NearestMean):
    """Have all sections and none of the parameters.

    Parameters
    ----------
    nothing : None
        Nothing.

    Attributes
    ----------
    nothing_ : None
        Nothing.

    Examples
    --------
    >>> None
    """
