"""Which class is positive, and what follows from it."""

import warnings
from datetime import date, datetime

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise
from bagwise import all_estimators
from bagwise.base import get_bag_tags, is_conventional, positive_place
from bagwise.exceptions import PositiveClassWarning
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MICA, MISVM, SIL, SMIL, STMIL, MIKernelSVM, RegSVM, miSVM
from bagwise.testing import make_toy_bags

NAMES = np.array(["inactive", "active"])  # sorted, the positive class comes first


@pytest.fixture
def data():
    return make_toy_bags(24, kind="witness")


def fit(estimator, bags, y, **params):
    return clone(estimator).set_params(**params).fit(bags, y)


# ------------------------------------------------------------------------------ the class itself


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        (["inactive", "active"], "active"),
        (["inactive", "active"], np.str_("active")),
        ([2, 1], 1),
        ([2, 1], np.int64(1)),
        ([2.0, 1.0], 1),
        ([1, 0], 0),
        ([1, 0], False),
        ([True, False], False),
        ([True, False], np.False_),
        ([True, False], 0),
    ],
)
def test_pos_label_of_any_type(data, labels, pos_label):
    bags, y = data
    labels = np.array(labels)
    model = SIL(pos_label=pos_label).fit(bags, labels[y])
    plain = SIL().fit(bags, y)
    assert model.pos_label_ == labels[1]
    assert type(model.pos_label_) is type(labels[1].item())
    assert model.classes_.tolist() == sorted(labels.tolist())
    np.testing.assert_array_equal(model.predict(bags), labels[plain.predict(bags)])
    np.testing.assert_array_equal(model.decision_function(bags), -plain.decision_function(bags))


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
@pytest.mark.parametrize("kind", [np.datetime64, date.fromisoformat, datetime.fromisoformat])
def test_pos_label_may_be_a_day(data, kind, unit):
    bags, y = data
    days = np.array(["2021-01-01", "2020-01-01"], f"datetime64[{unit}]")
    model = SIL(pos_label=kind("2020-01-01")).fit(bags, days[y])
    assert positive_place(model) == 0
    np.testing.assert_array_equal(model.predict(bags), days[SIL().fit(bags, y).predict(bags)])
    with pytest.raises(ValueError, match="pos_label of SIL must be one of the classes"):
        SIL(pos_label=kind("2022-01-01")).fit(bags, days[y])


@pytest.mark.parametrize(
    ("labels", "pos_label", "message"),
    [
        ([1, 2], "1", r"must be one of the classes \[1, 2\]\. Got '1', of type str and not int\."),
        (["1", "2"], 1, r"classes \['1', '2'\]\. Got 1, of type int and not str\."),
        (["cancer", "normal"], "Cancer", r"classes \['cancer', 'normal'\]\. Got 'Cancer'\."),
        ([0, 1], np.nan, r"classes \[0, 1\]\. Got nan\."),
    ],
)
def test_pos_label_that_is_no_class(data, labels, pos_label, message):
    bags, y = data
    with pytest.raises(
        ValueError, match=f"pos_label of SIL {message}|pos_label of SIL .*{message}"
    ):
        SIL(pos_label=pos_label).fit(bags, np.array(labels)[y])


def test_pos_label_of_wrong_kind(data):
    with pytest.raises(ValueError, match="'pos_label' parameter of MISVM"):
        MISVM(pos_label=["active"]).fit(data[0], NAMES[data[1]])


def test_pos_label_is_for_two_classes():
    bags, y = make_toy_bags(24, n_classes=3)
    with pytest.raises(ValueError, match=r"pos_label of SIL is for two classes\. .* 3 classes"):
        SIL(pos_label=1).fit(bags, y)
    lists = np.eye(3, dtype=int)[y]
    with pytest.raises(ValueError, match=r"for two classes\. Got 1 and label lists"):
        SIL(pos_label=1).fit(bags, lists)
    assert SIL().fit(bags, y).pos_label_ is None
    assert SIL().fit(bags, lists).pos_label_ is None


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [False, True], [0.0, 1.0], [-1.0, 1.0]])
def test_conventional_labels_need_no_word(data, labels):
    bags, y = data
    assert is_conventional(np.array(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MISVM(kernel="linear").fit(bags, np.array(labels)[y])
    assert model.pos_label_ == labels[1]


@pytest.mark.parametrize("labels", [[1, 2], [0, 2], ["0", "1"], ["no", "yes"], [-1, 0]])
def test_guess_is_told(data, labels):
    bags, y = data
    first, second = labels
    with pytest.warns(PositiveClassWarning) as caught:
        model = SIL().fit(bags, np.array(labels)[y])
    (warning,) = caught
    assert f"SIL takes {second!r} for the positive class" in str(warning.message)
    assert f"set pos_label={first!r}" in str(warning.message)
    assert warning.filename == __file__
    assert model.pos_label_ == second
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SIL(pos_label=second).fit(bags, np.array(labels)[y])


def test_symmetric_methods_do_not_ask(data):
    bags, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MIKernelSVM(C=10.0).fit(bags, NAMES[y])
        RegSVM(C=10.0, consistency=0.0).fit(bags, NAMES[y])
    with pytest.warns(PositiveClassWarning):
        RegSVM(C=10.0).fit(bags, NAMES[y])


def test_warning_as_error_leaves_nothing_behind(data):
    bags, y = data
    model = SIL()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PositiveClassWarning):
            model.fit(bags, NAMES[y])
    assert not hasattr(model, "classes_")


def test_which_methods_take_it():
    taking = {name for name, cls in all_estimators() if "pos_label" in cls().get_params()}
    asymmetric = {name for name, cls in all_estimators() if get_bag_tags(cls()).asymmetric}
    assert taking == asymmetric
    assert {"MISVM", "miSVM", "MICA", "SIL", "SMIL", "RegSVM", "InsKISVM"} <= taking
    assert taking.isdisjoint({"MIKernelSVM", "MILES", "SparseMI", "MIGraphSVM"})


def test_place_of_the_positive_class(data):
    bags, y = data
    assert positive_place(SIL(pos_label="active").fit(bags, NAMES[y])) == 0
    assert positive_place(SIL(pos_label="inactive").fit(bags, NAMES[y])) == 1
    symmetric = MIKernelSVM(C=10.0).fit(bags, NAMES[y])
    assert positive_place(symmetric) == 1
    assert positive_place(symmetric, "active") == 0
    with pytest.raises(ValueError, match="one of the classes"):
        positive_place(symmetric, "toxic")


# ------------------------------------------------------------- a positive class that sorts first


def test_key_instances_make_the_molecule_active():
    """120 molecules, of which the active ones have one active conformer."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    bags = [rng.normal(size=(6, 4)) for _ in y]
    places = rng.integers(6, size=120)
    for bag, place in zip(bags[1::2], places[1::2], strict=True):
        bag[place] += 4.0
    train, test = slice(0, 80), slice(80, 120)
    new = bags[test]
    for method in (MISVM(C=10.0, n_init=5, random_state=0), MICA(C=10.0)):
        plain = fit(method, bags[train], y[train])
        assert plain.score(new, y[test]) > 0.95
        model = fit(method, bags[train], NAMES[y[train]], pos_label="active")
        assert model.score(new, NAMES[y[test]]) == plain.score(new, y[test])
        active = model.key_instances(new)[1::2]
        np.testing.assert_array_equal(active, places[test][1::2])
        with pytest.warns(PositiveClassWarning, match="takes 'inactive' for the positive"):
            guess = fit(method, bags[train], NAMES[y[train]])
        assert guess.score(new, NAMES[y[test]]) < 0.75


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("method", [MISVM(C=10.0), MICA(C=10.0), SIL()], ids=lambda e: str(e))
def test_bag_scores_as_its_worst_instance(data, method, kernel):
    bags, y = data
    model = fit(method, bags, NAMES[y], kernel=kernel, pos_label="active")
    inside = model.instance_decision_function(bags)
    parts = np.split(inside, np.cumsum([len(bag) for bag in bags])[:-1])
    np.testing.assert_allclose(model.decision_function(bags), [part.min() for part in parts])
    assert model.key_instances(bags).tolist() == [part.argmin() for part in parts]
    assert model.instance_predict(bags).tolist() == np.where(inside > 0, *NAMES).tolist()


@pytest.mark.parametrize(
    "method", [SIL(), MISVM(), MICA(C=10.0), SMIL(), STMIL(), RegSVM()], ids=str
)
def test_coefficients_give_the_scores(data, method):
    """The attributes are those of the scores that the estimator returns, whatever is positive."""
    bags, y = data
    for pos_label in NAMES:
        model = fit(method, bags, NAMES[y], kernel="linear", pos_label=pos_label)
        by_hand = np.concatenate(bags) @ model.coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(model.instance_decision_function(bags), by_hand, atol=1e-12)
    model = fit(method, bags, NAMES[y], kernel="rbf", gamma=0.5, pos_label="active")
    distance = ((np.concatenate(bags)[:, None] - model.support_vectors_) ** 2).sum(axis=2)
    by_hand = np.exp(-0.5 * distance) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.instance_decision_function(bags), by_hand, atol=1e-9)


def test_threshold_is_subtracted(data):
    """stMIL: a bag scores its mean, less the middle of what both signs ask for and a threshold."""
    bags, y = data
    model = STMIL(pos_label="active").fit(bags, NAMES[y])
    inside = model.instance_decision_function(bags)
    sizes = np.array([len(bag) for bag in bags])
    mean = np.add.reduceat(inside, np.cumsum(sizes) - sizes) / sizes
    expected = mean + (1.0 / sizes - 1.0) - model.threshold_[0]
    np.testing.assert_allclose(model.decision_function(bags), expected)


# -------------------------------------------------------------------------------- through tools


@pytest.mark.parametrize("method", [SIL(), miSVM(), MICA()], ids=str)
def test_search_gives_the_same(data, method):
    bags, y = data
    grid = {"C": [5.0, 10.0], "gamma": [0.1, "scale"]}
    plain = BagGridSearchCV(method, grid, cv=3, error_score="raise").fit(bags, y)
    named = BagGridSearchCV(
        clone(method).set_params(pos_label="active"), grid, cv=3, error_score="raise"
    ).fit(bags, NAMES[y])
    assert named.best_params_ == plain.best_params_
    for split in range(3):
        column = f"split{split}_test_score"
        np.testing.assert_array_equal(named.cv_results_[column], plain.cv_results_[column])
    np.testing.assert_array_equal(named.decision_function(bags), -plain.decision_function(bags))


def test_pipeline_and_calibration_give_the_same(data):
    bags, y = data
    scaled = make_pipeline(InstanceTransformer(StandardScaler()), MISVM())
    plain = CalibratedClassifierCV(scaled, cv=3).fit(bags, y).predict_proba(bags)
    scaled = clone(scaled).set_params(misvm__pos_label="active")
    model = CalibratedClassifierCV(scaled, cv=3).fit(bags, NAMES[y])
    assert model.classes_.tolist() == ["active", "inactive"]
    np.testing.assert_allclose(model.predict_proba(bags)[:, ::-1], plain, atol=1e-6)


def test_saved_model_knows_it(data, tmp_path):
    bags, y = data
    model = STMIL(pos_label="active").fit(bags, NAMES[y])
    bagwise.save(model, tmp_path / "model")
    loaded = bagwise.load(tmp_path / "model")
    assert (loaded.pos_label, loaded.pos_label_) == ("active", "active")
    assert "pos_label='active'" in repr(loaded)
    for question in ("decision_function", "predict", "key_instances", "instance_predict"):
        np.testing.assert_array_equal(
            getattr(loaded, question)(bags), getattr(model, question)(bags)
        )
