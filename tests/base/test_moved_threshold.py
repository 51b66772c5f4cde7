"""Optima that call all bags the same: the threshold moves, and with it all that follows from it."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

import bagwise
from bagwise import all_estimators
from bagwise.bags import Bags
from bagwise.base import BagClassifier, Target, _moved_threshold
from bagwise.base._moved_threshold import Task, _between, folds, move_if_constant, move_if_mistaken
from bagwise.base._target import encode_target
from bagwise.density import APR
from bagwise.embedding import DDSVM, MILES, PPMMSVM, MInD
from bagwise.exceptions import ConstantModelWarning, MovedThresholdWarning
from bagwise.metric import MIML, MIMLCA, MLCA, MildML
from bagwise.neighbors import CitationKNN
from bagwise.svm import (
    MIODM,
    ODM,
    PCSVM,
    SBMIL,
    SIL,
    SMIL,
    BagKISVM,
    MIKernelSVM,
    StatisticKernelSVM,
    miSVM,
)
from bagwise.testing import make_toy_bags

METHODS = [
    SIL(C=0.1),
    miSVM(C=0.1),
    SBMIL(C=0.1),
    PCSVM(C=0.1),
    SMIL(C=0.01),
    MIKernelSVM(C=0.01),
    StatisticKernelSVM(C=0.01),
    MInD(C=0.01),
    PPMMSVM(C=0.1, n_components=10, random_state=0),
    DDSVM(C=0.1, n_candidates=5),
]


def rare_bags(n_bags=100, n_positive=5, shift=2.0, seed=0):
    """Return bags of which 5 % have two instances that lie a little apart from the others."""
    rng = np.random.default_rng(seed)
    bags = rng.normal(size=(n_bags, 6, 3))
    y = (np.arange(n_bags) < n_positive).astype(int)
    bags[y == 1, :2] += shift
    order = rng.permutation(n_bags)
    return bags[order], y[order]


def moved(model, bags, y, **weights):
    with pytest.warns(MovedThresholdWarning):
        return clone(model).fit(bags, y, **weights)


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_rare_positive_bags_are_told_apart(model):
    bags, y = rare_bags()
    model = moved(model, bags, y)
    scores = model.decision_function(bags)
    assert (scores <= model.intercept_shift_[0]).all()  # at the optimum all are negative
    assert set(model.predict(bags)) == {0, 1}
    new, truth = rare_bags(400, 20, seed=1)
    assert balanced_accuracy_score(truth, model.predict(new)) > 0.7
    if model.__bagwise_tags__().max_rule:
        inside = model.instance_decision_function(bags).reshape(len(bags), -1)
        np.testing.assert_allclose(inside.max(axis=1), scores, rtol=1e-12)


def task_of(bags, y):
    target = Target(np.arange(2), y)
    return Task(Bags.from_list(bags), target, np.ones((len(y), 1)), np.ones(len(y)))


def unseen_scores(model, bags, y):
    """Return the score of each bag by a model that was fitted without its fold."""
    fold, scores = folds(task_of(bags, y)), np.empty(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantModelWarning)
        for k in range(3):
            part = clone(model).fit(bags[fold != k], y[fold != k])
            scores[fold == k] = part.decision_function(bags[fold == k]) - part.intercept_shift_
    return scores


def counts_nearest_to_all(scores, y):
    """Return how many bags may be called positive: as many as are, or the numbers nearest to that
    with no more mistakes than "never".
    """
    ranked = y[np.argsort(-scores)]
    ahead = 2 * np.cumsum(ranked)[:-1] - np.arange(1, len(y))  # right ones less wrong ones
    good = np.flatnonzero(ahead >= min(0, ahead.max())) + 1
    off = np.abs(good - y.sum())
    return good[off == off.min()]


def shifts_nearest_to_all(scores, y):
    ordered = np.sort(-scores)
    return [0.5 * (ordered[n - 1] + ordered[n]) for n in counts_nearest_to_all(scores, y)]


def test_as_many_unseen_bags_are_called_positive_as_there_are():
    bags, y = rare_bags()
    with pytest.warns(MovedThresholdWarning) as caught:
        model = SIL(C=0.1).fit(bags, y)
    scores = unseen_scores(SIL(C=0.1, gamma=model.gamma_), bags, y)
    (shift,) = shifts_nearest_to_all(scores, y)
    assert model.intercept_shift_[0] == pytest.approx(shift, abs=1e-5)
    found, mistaken = ((scores > -shift)[y == label].mean() for label in (1, 0))
    assert found > 0.2 > mistaken
    (warning,) = caught
    assert str(warning.message) == (
        "SIL predicts 0 at its optimum for every bag that it learned from. The threshold was moved "
        f"by {model.intercept_shift_[0]:.3g}, so that it predicts 1 for {found:.0%} of the bags "
        f"that have that label and {mistaken:.0%} of the others, where bags are left out of the "
        "fit."
    )
    assert warning.filename == __file__


def test_a_threshold_learned_from_training_bags_gives_way():
    bags, y = rare_bags(shift=0.7, seed=1)
    with pytest.warns(MovedThresholdWarning, match="0 with the threshold that it learned for"):
        model = BagKISVM(random_state=0).fit(bags, y)
    raw = BagKISVM(threshold="zero", random_state=0).fit(bags, y)
    assert model.intercept_ - model.intercept_shift_ == pytest.approx(raw.intercept_)
    fold, scores = folds(task_of(bags, y)), np.empty(len(y))
    for k in range(3):
        part = clone(raw).set_params(gamma=model.gamma_).fit(bags[fold != k], y[fold != k])
        scores[fold == k] = part.decision_function(bags[fold == k])
    (shift,) = shifts_nearest_to_all(scores, y)
    seen = np.sort(raw.decision_function(bags))
    assert seen[-1] < -shift  # so it goes on, to where one training bag is left
    assert model.intercept_shift_[0] == pytest.approx(-0.5 * (seen[-2] + seen[-1]), abs=1e-4)
    assert set(model.predict(bags)) == {0, 1}


@pytest.mark.parametrize(("level", "expected"), [(1.5, 1.5), (5.0, 3.0), (2.0, 2.0), (-1.0, 0.5)])
def test_thresholds_beyond_the_scores_of_training_bags_end_where_one_is_left(level, expected):
    assert _between(np.array([4.0, 0.0, 1.0, 2.0]), level) == expected


def test_thresholds_need_scores_that_differ():
    assert _between(np.array([1.0, 1.0 + 1e-9]), 2.0) is None


@pytest.mark.parametrize("first", range(4))
def test_it_stays_where_unseen_bags_are_ranked_no_better_than_by_chance(first):
    bags, _ = rare_bags(shift=0.0)
    y = (np.arange(100) % 20 == first).astype(int)
    model = MIKernelSVM(C=0.01, gamma=0.3)
    scores = unseen_scores(model, bags, y)
    is_ranked = roc_auc_score(y, scores) > 0.5
    # Nor is there a place where no more bags are wrong than by "never".
    wrong = [((scores >= level) != y).sum() for level in scores]
    assert is_ranked or min(wrong) > y.sum()
    with pytest.warns(ConstantModelWarning) as caught:
        model.fit(bags, y)
    assert caught[0].category is (MovedThresholdWarning if is_ranked else ConstantModelWarning)
    assert (model.intercept_shift_[0] > 0) == is_ranked


def test_it_moves_where_it_does_no_harm():
    """Bags are ranked worse than by chance, but of the best ones as many are positive as not."""
    scores, weight = np.arange(6.0) - 6.0, np.ones(6)

    def task_of(sign):
        assert roc_auc_score(sign, scores) < 0.5
        y = (np.array(sign) > 0).astype(int)
        return Task(None, encode_target(SIL(), y, weight), weight[:, None], weight)

    model = Fixed(scores[:, None])
    with pytest.warns(MovedThresholdWarning, match="for 33% of the bags that have that label and"):
        assert move_if_constant(model, task_of([1, 1, -1, -1, 1, -1]), scores, 0)
    assert model.intercept_shift_[0] == 2.5  # 2 are above it; of 3 more would be wrong than by 0
    model = Fixed(scores[:, None])
    assert not move_if_constant(model, task_of([1, 1, 1, -1, -1, -1]), scores, 0)
    assert model.intercept_shift_[0] == 0


def test_it_stays_where_training_bags_allow_no_threshold_without_harm(monkeypatch):
    """Left-out bags have one at 4.5; at -1.5, where training bags have, four of seven are wrong."""
    unseen, weight = np.arange(7.0), np.ones(7)
    monkeypatch.setattr(_moved_threshold, "unseen_scores", lambda *_: unseen)
    y = np.array([1, 1, 0, 0, 0, 1, 0])
    assert roc_auc_score(y, unseen) < 0.5
    task = Task(None, encode_target(SIL(), y, weight), weight[:, None], weight)
    for lowest, moves in ((-7.0, False), (0.0, True)):
        scores = np.arange(7.0) + lowest
        model = Fixed(scores[:, None])
        model._memorizes = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MovedThresholdWarning)
            assert move_if_constant(model, task, scores, 0) == moves


def test_one_label_for_all_gives_way_to_the_more_frequent_one():
    """However bags are ranked: here the wrong way round, so that one bag keeps the other label."""
    scores, sign = np.arange(1.0, 7.0), np.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
    model, weight = Fixed(scores[:, None]), np.ones(6)
    task = Task(None, encode_target(SIL(), (sign > 0).astype(int), weight), weight[:, None], weight)
    with pytest.warns(MovedThresholdWarning, match="for 0% of the bags that have that label and 2"):
        assert move_if_constant(model, task, scores, 1)
    assert model.intercept_shift_[0] == -5.5
    model = Fixed(-scores[:, None])  # "never" is the more frequent one, and these are ranked right
    with pytest.warns(MovedThresholdWarning, match="for 100% of the bags that have that label and"):
        assert move_if_constant(model, task, -scores, 0)
    assert model.intercept_shift_[0] == 2.5
    assert not move_if_constant(Fixed(scores[:, None] - 7.0), task, scores - 7.0, 0)


def test_folds_know_bags_by_their_instances():
    bags, y = rare_bags(20, 6)
    y[:2], bags[1] = 0, bags[0, ::-1]  # the same bag twice
    task = task_of(bags, y)
    fold = folds(task)
    assert fold[0] == fold[1]
    assert all(np.ptp(np.bincount(fold[y == label])) <= 2 for label in (0, 1))
    order = np.random.default_rng(0).permutation(20)
    assert (folds(task.take(order)) == fold[order]).all()
    alone = np.flatnonzero((y == 0) | (np.cumsum(y) == 1))
    assert folds(task.take(alone)) is None  # one positive bag: none is left without it


def test_result_is_about_the_optimum():
    bags, y = rare_bags(n_positive=30)
    model = moved(SIL(C=1e-3, kernel="linear"), bags, y)
    sign = np.repeat(np.where(y == 1, 1.0, -1.0), bags.shape[1])
    scores = model.instance_decision_function(bags) - model.intercept_shift_
    hinge = np.maximum(0.0, 1.0 - sign * scores).sum()
    objective = 0.5 * (model.coef_**2).sum() + 1e-3 * hinge
    assert model.result_.objective == pytest.approx(objective)


def test_nothing_moves_where_two_labels_are_predicted():
    bags, y = make_toy_bags(24)
    metric = MIMLCA(centers="learned")  # Gaussians of classes learn a threshold
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SIL().fit(bags, y)
        others = [clone(other).fit(bags, y) for other in (metric, MLCA(), APR())]
    for other in (model, *others):
        assert other.intercept_shift_.tolist() == [0.0]
    with pytest.warns(ConstantModelWarning, match="predicts 'c' for every bag"):
        model = SIL().fit(np.zeros((6, 2)), list("abcccc"))
    assert model.intercept_shift_.tolist() == [0.0, 0.0, 0.0]


BY_FREQUENCY = [MIML(), MildML(), APR(search="grow", epsilon=1e-6)]


@pytest.mark.parametrize("model", BY_FREQUENCY, ids=lambda model: type(model).__name__)
def test_methods_that_do_not_count_mistakes_make_no_more_than_one_label_for_all(model, tmp_path):
    bags, y = rare_bags(shift=1.0)
    with pytest.warns(MovedThresholdWarning, match="and 0 is for 95%"):
        model = clone(model).fit(bags, y)
    scores = model.decision_function(bags)
    assert model.predict(bags).sum() in counts_nearest_to_all(scores, y)
    before = np.sign(scores - model.intercept_shift_[0])
    assert (before == 2 * y - 1).mean() <= 0.95  # no better than always 0
    assert model.score(bags, y) > (before == 2 * y - 1).mean()
    bagwise.save(model, tmp_path / "m.model")
    again = bagwise.load(tmp_path / "m.model")
    np.testing.assert_array_equal(again.decision_function(bags), scores)


def test_a_metric_that_chooses_key_instances_is_judged_on_bags_that_are_left_out():
    bags, y = rare_bags(shift=1.0)
    with pytest.warns(MovedThresholdWarning, match="left out of the fit, and 0 is for 95%"):
        model = MIMLCA(centers="learned").fit(bags, y)
    scores = unseen_scores(MIMLCA(centers="learned"), bags, y)
    assert ((scores > 0) == y).mean() < 0.95
    shifts = shifts_nearest_to_all(scores, y)
    assert any(model.intercept_shift_[0] == pytest.approx(shift, abs=1e-5) for shift in shifts)


@pytest.mark.parametrize("model", [MILES()], ids=["MILES"])
def test_machines_on_their_own_instances_are_judged_on_bags_that_are_left_out(model):
    """All training bags are right, and of others fewer than by one label for all."""
    bags, y = rare_bags(100, 25, shift=0.5)
    with pytest.warns(MovedThresholdWarning, match="left out of the fit, and 0 is for 75%"):
        model = clone(model).fit(bags, y)
    optimum = model.decision_function(bags) - model.intercept_shift_[0]
    assert ((optimum > 0) == y).all()
    scores = unseen_scores(clone(model).set_params(gamma=model.gamma_), bags, y)
    assert ((scores > 0) == y).mean() < 0.75
    shifts = shifts_nearest_to_all(scores, y)
    assert any(model.intercept_shift_[0] == pytest.approx(shift, abs=1e-5) for shift in shifts)
    assert ((scores + model.intercept_shift_[0] > 0) == y).mean() >= 0.75


@pytest.mark.parametrize(("shift", "expected"), [(0.8, 3), (2.5, 2)])
def test_no_more_bags_are_left_out_than_are_asked_for(shift, expected, monkeypatch):
    """Two folds are enough where so many of their bags are right that the third cannot matter."""
    bags, y = rare_bags(60, 30, shift=shift, seed=2)
    scores = unseen_scores(MILES(gamma=0.3), bags, y)
    fold, is_right = folds(task_of(bags, y)), (scores > 0) == y
    needed = next((k for k in range(3) if is_right[fold <= k].sum() >= 30), 2) + 1
    left_out, real = [], MILES._scores_by_others

    def counted(model, task, bags):
        left_out.append(bags.sum())
        return real(model, task, bags)

    monkeypatch.setattr(MILES, "_scores_by_others", counted)
    model = MILES(gamma=0.3).fit(bags, y)
    assert len(left_out) == needed == expected
    assert model.intercept_shift_[0] == 0


def test_learners_from_instances_are_judged_by_what_they_say_of_bags():
    bags, y = rare_bags(shift=1.0)
    with pytest.warns(MovedThresholdWarning):
        model = MLCA().fit(bags, y)
    assert model.predict(bags).sum() in counts_nearest_to_all(model.decision_function(bags), y)
    rows, of_rows = bags.reshape(-1, 3), np.repeat(y, 6)
    with pytest.warns(MovedThresholdWarning):
        model = MLCA().fit(rows, of_rows)  # here these are the bags
    scores = model.decision_function(rows)
    assert model.predict(rows).sum() in counts_nearest_to_all(scores, of_rows)


def large_bags(n_bags, seed):
    """Return bags of 40 instances; two of five bags are positive, and half of their instances."""
    rng = np.random.default_rng(seed)
    bags, y = rng.normal(size=(n_bags, 40, 2)), (np.arange(n_bags) % 5 < 2).astype(int)
    bags[y == 1, :20] += 2.0
    return bags, y


@pytest.mark.parametrize("model", [SIL(), ODM()], ids=["SIL", "ODM"])
def test_methods_that_count_mistakes_of_instances_do_not_call_most_bags_positive(model):
    bags, y = large_bags(50, seed=0)
    with pytest.warns(MovedThresholdWarning, match="and 0 is for 60%"):
        model = clone(model).fit(bags, y)
    new, truth = large_bags(200, seed=1)
    scores = model.decision_function(new)
    assert ((scores > model.intercept_shift_[0]) == truth).mean() < 0.6  # worse than always 0
    assert model.score(new, truth) > 0.9
    rows, of_rows = bags.reshape(-1, 1, 2)[::10], np.repeat(y, 40)[::10]
    assert clone(model).fit(rows, of_rows).intercept_shift_[0] == 0  # these are bags themselves


@pytest.mark.parametrize("solver", ["best", "local"])
@pytest.mark.parametrize("C", [1e-4, 1e-3])
def test_soft_margin_distributions_do_not_call_most_bags_positive(solver, C):
    rng = np.random.default_rng(0)
    bags, y = rng.normal(size=(100, 10, 30)), (np.arange(100) < 20).astype(int)
    bags[np.flatnonzero(y), rng.integers(10, size=20), :4] += 2.0
    with pytest.warns(MovedThresholdWarning, match="and 0 is for 80%"):
        model = MIODM(C=C, kernel="linear", solver=solver).fit(bags, y)
    optimum = model.decision_function(bags) - model.intercept_shift_[0]
    assert ((optimum > 0) == y).mean() < 0.6
    assert model.score(bags, y) > 0.8


def test_who_knows_training_bags_by_heart_is_judged_by_others():
    bags, y = large_bags(60, seed=0)
    few, new = bags[:, 15:25], large_bags(200, seed=1)
    with pytest.warns(MovedThresholdWarning, match="of the bags that are left out of the fit, and"):
        model = ODM(gamma=5.0).fit(few, y)
    optimum = model.decision_function(few) - model.intercept_shift_[0]
    assert ((optimum > 0) == y).mean() > 0.6  # training bags are no reason to move
    scores = model.decision_function(new[0][:, 15:25])
    before, after = (((scores > level) == new[1]).mean() for level in (model.intercept_shift_, 0.0))
    assert before < 0.6 < after


def test_rounding_of_weights_breaks_no_tie():
    """One bag more and one of the same weight less are right than by the frequent label."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        weight = np.append(rng.choice([0.1, 0.3, 0.7], 20), [0.3, 0.3])
        y = np.append(np.arange(20) % 10 == 0, [True, False]).astype(int)
        scores = np.append(-1.0 - rng.random(20), [1.0, 1.0])
        model = Fixed(scores[:, None])
        target = encode_target(SIL(), y, weight)
        move_if_mistaken(model, Task(None, target, weight[:, None], weight))
        assert model.intercept_shift_ == 0


class Fixed:
    """A model with these scores."""

    _memorizes, _knows_by_heart, classes_ = False, False, np.array([0, 1])

    def __init__(self, scores):
        self.scores, self.intercept_shift_ = scores, np.zeros(1)

    def _bag_scores(self, bags):
        return self.scores


def test_a_metric_says_nothing_of_labels():
    bags, y = rare_bags(shift=1.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        MIMLCA().fit_transform(Bags.from_array(bags), y)
        CitationKNN(metric=MIMLCA()).fit(bags, y)
    assert [str(warning.message) for warning in said] == []


def test_what_the_user_chose_stays():
    bags, y = rare_bags(60, 3)
    with pytest.warns(ConstantModelWarning, match="predicts 0 for every bag that it learned from."):
        model = MIODM(C=0.01, threshold="zero").fit(bags, y)
    assert not hasattr(model, "intercept_shift_")
    assert moved(MIODM(C=0.01), bags, y).intercept_shift_[0] > 0


@pytest.mark.parametrize("model", [SIL(C=0.1), MIKernelSVM(C=0.01)], ids=["max", "mean"])
def test_order_and_copies_of_bags_do_not_matter(model):
    bags, y = rare_bags()
    expected = moved(model, bags, y).intercept_shift_
    rng = np.random.default_rng(1)
    order = rng.permutation(len(bags))
    assert moved(model, bags[order], y[order]).intercept_shift_ == pytest.approx(expected, rel=1e-3)
    weight = rng.integers(0, 3, len(bags))
    weight[y == 1] = 1
    copies = np.repeat(order, weight[order])
    weighted = moved(model, bags, y, sample_weight=weight).intercept_shift_
    repeated = moved(model, bags[copies], y[copies]).intercept_shift_
    assert weighted == pytest.approx(repeated, rel=1e-3)


def test_names_of_classes_do_not_matter():
    bags, y = rare_bags()
    plain = moved(SIL(C=0.1), bags, y)
    model = moved(SIL(C=0.1, pos_label="cancer"), bags, np.array(["normal", "cancer"])[y])
    assert model.intercept_shift_ == -plain.intercept_shift_
    assert (model.decision_function(bags) == -plain.decision_function(bags)).all()
    # A method that treats both classes alike turns all signs if the labels are swapped.
    plain, swapped = (moved(MIKernelSVM(C=0.01), bags, labels) for labels in (y, 1 - y))
    np.testing.assert_allclose(swapped.intercept_shift_, -plain.intercept_shift_, rtol=1e-6)


def test_classes_that_are_objects_have_names():
    bags, y = rare_bags()
    names = np.array(["no", "yes"], dtype=object)[y]
    with pytest.warns(MovedThresholdWarning, match="predicts 'no' at its optimum.*predicts 'yes'"):
        SIL(C=0.1, pos_label="yes").fit(bags, names)
    with pytest.warns(MovedThresholdWarning, match="and 'no' is for 95%"):
        MLCA().fit(rare_bags(shift=1.0)[0], names)


def test_weights_of_classes_count():
    bags, y = rare_bags(n_positive=30)
    shares = [
        moved(MIKernelSVM(C=0.01, class_weight={0: 1.0, 1: weight}), bags, y).predict(bags).mean()
        for weight in (0.5, 1.0, 2.0)
    ]
    assert shares == sorted(shares)
    assert shares[0] < shares[2]


def test_given_kernels_are_cut_into_folds():
    bags, y = rare_bags()
    instances = bags.reshape(-1, 3)
    gram = rbf_kernel(instances, gamma=0.3)
    given = Bags(gram, np.arange(101) * 6)
    model = moved(SIL(C=0.1, kernel="precomputed"), given, y)
    plain = moved(SIL(C=0.1, gamma=0.3), bags, y)  # other folds, since bags are other numbers
    optimum = plain.decision_function(bags) - plain.intercept_shift_
    np.testing.assert_allclose(
        model.decision_function(given) - model.intercept_shift_, optimum, atol=1e-5
    )


def test_saved_models_keep_it(tmp_path):
    bags, y = rare_bags()
    model = moved(SIL(C=0.1), bags, y)
    bagwise.save(model, tmp_path / "model.bagwise")
    again = bagwise.load(tmp_path / "model.bagwise")
    assert again.intercept_shift_ == model.intercept_shift_
    assert (again.decision_function(bags) == model.decision_function(bags)).all()


MOVABLE = [
    cls for _, cls in all_estimators() if issubclass(cls, BagClassifier) and cls()._threshold_moves
]


@pytest.mark.parametrize("cls", MOVABLE)
def test_intercepts_that_may_move_are_constants_of_bag_scores(cls):
    bags = Bags.from_list(make_toy_bags(8)[0])
    y = np.arange(8) % 2
    model = cls().fit(bags, y)
    before = model.decision_function(bags)
    model.intercept_shift_ += 0.25
    if hasattr(model, "intercept_"):
        model.intercept_ = model.intercept_ + 0.25
    np.testing.assert_allclose(model.decision_function(bags), before + 0.25, atol=1e-12)
