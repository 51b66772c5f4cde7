"""What instances of positive bags cost, and that bags which are left out of a fit choose it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import bagwise
from bagwise.base._moved_threshold import Task, folds, unseen_scores
from bagwise.base._target import encode_target
from bagwise.exceptions import ModelFileError
from bagwise.svm import ODM, SIL
from bagwise.testing import make_toy_bags

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

COMMON = 3.0 * np.random.default_rng(0).normal(size=(60, 5))


def common_bags(n_bags=30, n_classes=2, seed=0, size=40):
    """Return bags with one key instance at most; all others are drawn from the same few."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_bags) % n_classes
    bags = COMMON[rng.integers(len(COMMON), size=(n_bags, size))]
    for label in range(1, n_classes):
        bags[y == label, 0] = 2.0 * label - 1.0 + 0.1 * rng.normal(size=((y == label).sum(), 5))
    return bags, y


def fits_of(monkeypatch, cls):
    """Return a list that the fits of a class are noted in: the costs, and how many bags."""
    noted, solve = [], cls._solved

    def solved(self, task, costs):
        noted.append((list(costs), len(task.bags)))
        return solve(self, task, costs)

    monkeypatch.setattr(cls, "_solved", solved)
    return noted


def unseen(model, bags, y):
    """Return the scores of bags by models that learned from the other folds."""
    weight = np.ones(len(y))
    target = encode_target(SIL(), y, weight)
    fold = folds(Task(bagwise.Bags.from_array(bags), target, weight[:, None], weight))
    scores = np.empty(len(y))
    for k in range(3):
        part = clone(model).fit(bags[fold != k], y[fold != k])
        scores[fold == k] = part.decision_function(bags[fold == k]) - part.intercept_shift_
    return scores.round(4)  # bags whose best instance is the same are equal


def test_instances_that_all_bags_have_in_common_do_not_make_bags_positive():
    bags, y = common_bags()
    new, truth = common_bags(100, seed=1)
    model = SIL().fit(bags, y)
    assert model.positive_cost_ == ["sqrt"]
    assert roc_auc_score(truth, model.decision_function(new)) > 0.95
    assert model.score(new, truth) > 0.8
    usual = SIL(positive_cost=1.0).fit(bags, y)
    assert usual.positive_cost_ == [1.0]
    assert roc_auc_score(truth, usual.decision_function(new)) < 0.95
    asked = SIL(positive_cost="sqrt").fit(bags, y)
    for name in ("dual_coef_", "intercept_", "intercept_shift_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(asked, name))
    assert model.result_.objective == asked.result_.objective


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("cls", [SIL, ODM])
def test_bags_that_are_left_out_choose(cls, kernel):
    chosen = []
    for seed in range(6):
        bags, y = common_bags(30, seed=seed, size=4 + 4 * seed)
        model = cls(kernel=kernel, positive_cost="auto").fit(bags, y)
        (cost,) = model.positive_cost_
        gamma = {"gamma": model.gamma_} if kernel == "rbf" else {}
        plain = cls(kernel=kernel, positive_cost=1.0, **gamma)
        seen = plain.fit(bags, y)
        right = ((seen.decision_function(bags) > seen.intercept_shift_) == y).mean()
        limit = 0.5 + 2.0 * np.sqrt(31 / (12 * 15 * 15))
        is_asked = right < 0.75 or (cls is ODM and kernel == "rbf")
        aucs = [
            roc_auc_score(y, unseen(other, bags, y))
            for other in (plain, clone(plain).set_params(positive_cost="sqrt"))
        ]
        eased = is_asked and aucs[0] < limit and aucs[1] > aucs[0]
        assert cost == ("sqrt" if eased else 1.0)
        expected = cls(kernel=kernel, positive_cost=cost).fit(bags, y)
        np.testing.assert_array_equal(
            model.decision_function(bags), expected.decision_function(bags)
        )
        chosen.append(cost)
    assert len(set(chosen)) == 2 or cls is ODM


def test_folds_are_fitted_once_and_only_in_doubt(monkeypatch):
    noted = fits_of(monkeypatch, SIL)
    bags, y = make_toy_bags(24)
    assert SIL().fit(bags, y).positive_cost_ == [1.0]  # all training bags are right
    assert noted == [([1.0], 24)]
    noted.clear()
    rng = np.random.default_rng(0)
    bags, y = rng.normal(size=(50, 40, 2)), (np.arange(50) % 5 < 2).astype(int)
    bags[y == 1, :20] += 2.0  # most bags are called positive, but they are ranked well
    model = SIL().fit(bags, y)
    assert model.positive_cost_ == [1.0]
    assert model.intercept_shift_[0] != 0.0  # folds say where the threshold ought to be as well
    assert [costs for costs, _ in noted] == [[1.0]] * 4
    assert sum(n for _, n in noted) == 3 * 50
    noted.clear()
    bags, y = common_bags()
    assert SIL().fit(bags, y).intercept_shift_[0] != 0.0
    assert [costs for costs, _ in noted] == [[1.0]] * 4 + [["sqrt"]] * 4
    assert "_unseen" not in vars(SIL().fit(bags, y))


def test_bags_of_one_instance_have_nothing_to_choose(monkeypatch):
    noted = fits_of(monkeypatch, SIL)
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    model = SIL(C=0.1).fit(X, y)
    assert model.positive_cost_ == [1.0]
    assert {tuple(costs) for costs, _ in noted} == {(1.0,)}


@pytest.mark.parametrize("cls", [SIL, ODM])
def test_bags_that_are_read_in_passes_keep_the_plain_cost(cls, monkeypatch):
    bags, y = common_bags(size=20)
    model = cls(kernel="linear", positive_cost="auto")
    assert model.fit(bags, y).positive_cost_ == ["sqrt"] or cls is ODM
    monkeypatch.setattr("bagwise.svm.machinery._kernel_machine.MANY_VALUES", 1)
    noted = fits_of(monkeypatch, cls)
    assert model.fit(bags, y).positive_cost_ == [1.0]
    assert {tuple(costs) for costs, _ in noted} == {(1.0,)}


def test_each_label_has_its_own_choice():
    bags, y = common_bags()
    clear = np.arange(len(y)) % 3 == 0
    bags[clear] += 50.0  # known by any instance
    lists = np.column_stack([y, clear]).astype(int)
    model = SIL().fit(bags, lists)
    assert model.positive_cost_ == ["sqrt", 1.0]
    assert len(model.result_.parts) == 2
    scores = model.decision_function(bags)
    for label, cost in enumerate(model.positive_cost_):
        alone = SIL(positive_cost=cost).fit(bags, lists[:, label])
        optimum = alone.decision_function(bags) - alone.intercept_shift_
        np.testing.assert_allclose(scores[:, label], optimum, atol=1e-6)


def test_each_class_has_its_own_choice():
    bags, y = common_bags(60, n_classes=3)
    class_weight = {0: 1.0, 1: 1.0, 2: 1e-6}  # which leaves two, as many of both
    model = SIL(class_weight=class_weight).fit(bags, y)
    assert "sqrt" in model.positive_cost_
    weight = np.vectorize(class_weight.get)(y)
    for label in (0, 1):
        alone = SIL(gamma=model.gamma_).fit(bags, y == label, sample_weight=weight)
        assert alone.positive_cost_ == [model.positive_cost_[label]]


def test_order_weights_and_names_of_classes_do_not_matter():
    bags, y = common_bags()
    rng = np.random.default_rng(1)
    order, weight = rng.permutation(len(y)), rng.integers(1, 3, len(y))
    model = SIL().fit(bags, y)
    shuffled = SIL().fit(rng.permutation(bags[order], axis=1), y[order])
    assert shuffled.positive_cost_ == model.positive_cost_ == ["sqrt"]
    np.testing.assert_allclose(
        shuffled.decision_function(bags), model.decision_function(bags), atol=1e-4
    )
    weighted = SIL().fit(bags, y, sample_weight=weight)
    repeated = SIL().fit(np.repeat(bags, weight, axis=0), np.repeat(y, weight))
    assert weighted.positive_cost_ == repeated.positive_cost_ == ["sqrt"]
    np.testing.assert_allclose(
        weighted.decision_function(bags), repeated.decision_function(bags), atol=1e-4
    )
    named = SIL(pos_label="a").fit(bags, np.array(["b", "a"])[y])
    assert named.positive_cost_ == ["sqrt"]
    np.testing.assert_array_equal(named.decision_function(bags), -model.decision_function(bags))


def test_one_bag_of_a_class_leaves_no_choice():
    bags, y = common_bags(20)
    y[3:] = 0
    assert SIL().fit(bags, y).positive_cost_ == [1.0]


def test_saved_models_keep_what_was_chosen(tmp_path):
    bags, y = common_bags()
    path = tmp_path / "m.model"
    model = SIL().fit(bags, y)
    bagwise.save(model, path)
    again = bagwise.load(path)
    assert again.positive_cost_ == ["sqrt"]
    assert again.positive_cost == "auto"
    np.testing.assert_array_equal(again.decision_function(bags), model.decision_function(bags))
    del again.positive_cost_  # as in files of earlier releases
    bagwise.save(again, path)
    again = bagwise.load(path)
    np.testing.assert_array_equal(again.decision_function(bags), model.decision_function(bags))
    for wrong in ([1.0, 1.0], ["cube"], [-1.0], "sqrt", [True]):
        model.positive_cost_ = wrong
        with pytest.raises(ModelFileError, match="positive_cost_"):
            bagwise.save(model, path)


@pytest.mark.parametrize("cls", [SIL, ODM])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_costs_may_be_numbers_of_numpy(cls, kind, tmp_path):
    bags, y = make_toy_bags(16)
    model = cls(positive_cost=kind(1)).fit(bags, y)
    bagwise.save(model, tmp_path / "m.model")
    assert bagwise.load(tmp_path / "m.model").positive_cost_ == [1.0]


@pytest.mark.parametrize("positive", [0, 1])
def test_machines_on_folds_have_the_cost_that_was_chosen(positive):
    bags, y = common_bags()
    model = SIL(pos_label=positive).fit(bags, y if positive else 1 - y)
    weight = np.ones(len(y))
    target = encode_target(SIL(), y, weight)
    task = Task(bagwise.Bags.from_array(bags), target, weight[:, None], weight)
    if not positive:
        task = task._replace(target=encode_target(SIL(), 1 - y, weight).turned())
    expected = unseen(SIL(positive_cost="sqrt", gamma=model.gamma_), bags, y)
    np.testing.assert_allclose(unseen_scores(model, task), expected, atol=1e-4)


def test_failed_fits_leave_no_trace(monkeypatch):
    bags, y = common_bags()
    model = SIL().fit(bags, y)
    before = dict(vars(model))

    def interrupted(self, task):
        raise KeyboardInterrupt

    monkeypatch.setattr(bagwise.base._classifier, "review", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
