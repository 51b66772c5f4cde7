"""PC-SVM: its objective by the formula, its limits, and what it says of constraints."""

import warnings

import numpy as np
import pytest

from bagwise.datasets import make_key_instance_bags, make_three_class_bags
from bagwise.persistence import load, save
from bagwise.svm import MISVM, PCSVM
from svm.naive import instance_kernel

DATA = make_key_instance_bags(n_bags=40, random_state=3)
BAGS, Y = DATA.bags, DATA.y

MODELS = [
    PCSVM(C=10.0),
    PCSVM(C=10.0, penalty=1.0, spread=0.9),
    PCSVM(C=10.0, centering="none", spread=0.5),
    PCSVM(C=0.1, kernel="linear"),
    PCSVM(C=10.0, approx="nystroem", rank=20, random_state=0),
    PCSVM(C=10.0, cache_size=0.001),
    PCSVM(C=10.0, solver="conic"),
]


def of(model):
    """Return the length of the weights, and for each positive bag spread, size and ``|A_i w|``."""
    if hasattr(model, "coef_"):
        feature_map = np.eye(BAGS.n_features)
        norm = np.linalg.norm(model.coef_[0])
        kernel = lambda A: A @ feature_map @ A.T  # noqa: E731
    else:
        kernel = lambda A: instance_kernel(A, A, "rbf", gamma=model.gamma_)  # noqa: E731
        K = kernel(model.support_vectors_)
        norm = np.sqrt(model.dual_coef_[0] @ K @ model.dual_coef_[0])
    along = model.instance_decision_function(BAGS) - model.intercept_[0]
    rows = []
    for i in np.flatnonzero(Y):
        inside = slice(BAGS.offsets[i], BAGS.offsets[i + 1])
        f, K = along[inside], kernel(BAGS.instances[inside])
        shown = np.linalg.norm(f - f.mean() if model.centering == "bag" else f)
        rows.append((np.trace(K) - K.sum() / len(f), len(f), shown))
    return norm, *np.array(rows).T


def is_exact(model):
    return model.approx is None


def short(model):
    return repr(model).replace(" ", "")


@pytest.mark.parametrize("model", [m for m in MODELS if is_exact(m)], ids=short)
def test_objective_is_the_formula(model):
    model.fit(BAGS, Y)
    scores = model.instance_decision_function(BAGS)
    loss = 0.0
    for a, b, label in zip(BAGS.offsets[:-1], BAGS.offsets[1:], Y, strict=True):
        f = scores[a:b]
        loss += max(1.0 - f.max(), 0.0) if label else np.maximum(1.0 + f, 0.0).sum()
    norm, spread, size, shown = of(model)
    rho = np.maximum(spread - model.lam_[0] * size, 0.0)
    short_of = np.maximum(np.sqrt(rho) * norm - shown, 0.0)[rho > 0].sum()
    wanted = 0.5 * norm**2 + model.C * (loss + model.penalty_[0] * short_of)
    np.testing.assert_allclose(model.result_.objective, wanted, rtol=1e-6)
    np.testing.assert_allclose(model.weight_norm_[0], norm, rtol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=short)
def test_objective_never_rises(model):
    model.fit(BAGS, Y)
    assert (np.diff(model.result_.history) <= 0.0).all()
    assert model.result_.converged
    assert model.result_.history[-1] < model.result_.history[0]


@pytest.mark.parametrize("model", [m for m in MODELS if is_exact(m)], ids=short)
def test_words_of_constraints_are_true(model):
    model.fit(BAGS, Y)
    norm, spread, size, shown = of(model)
    rho = spread - model.lam_[0] * size
    words = model.constraints_[:, 0]
    assert (words[Y == 0] == "none").all()
    for word, r, s in zip(words[Y == 1], rho, shown, strict=True):
        if r <= 1e-9:
            assert word == "vacuous"
        else:
            level = np.sqrt(r) * norm
            near = abs(level - s) <= 2e-4 * norm
            assert word == "active" or (word == "violated") == (s < level)
            assert word != "active" or near


@pytest.mark.parametrize("spread", [0.0, 0.5, 0.75, 1.0])
def test_spread_is_the_share_of_bags_without_constraint(spread):
    model = PCSVM(C=10.0, spread=spread).fit(BAGS, Y)
    vacuous = (model.constraints_ == "vacuous").sum()
    assert vacuous == max(1, np.ceil(spread * Y.sum() - 1e-9))


def test_with_all_constraints_vacuous_it_is_misvm():
    plain = MISVM(C=10.0, n_init=1).fit(BAGS, Y)
    for model in (PCSVM(C=10.0, spread=1.0, n_init=1), PCSVM(C=10.0, penalty=0.0, n_init=1)):
        model.fit(BAGS, Y)
        np.testing.assert_allclose(
            model.decision_function(BAGS), plain.decision_function(BAGS), atol=1e-5
        )


@pytest.mark.parametrize("centering", ["bag", "none"])
def test_conic_programmes_lead_to_the_same_model(centering):
    settings = {"C": 10.0, "penalty": 0.5, "spread": 0.5, "centering": centering}
    ours = PCSVM(**settings).fit(BAGS, Y)
    theirs = PCSVM(solver="conic", **settings).fit(BAGS, Y)
    np.testing.assert_allclose(ours.result_.objective, theirs.result_.objective, rtol=1e-5)
    # Objectives that differ by 1e-5 have weights that differ by the root of that.
    np.testing.assert_allclose(
        ours.decision_function(BAGS), theirs.decision_function(BAGS), atol=1e-2
    )


def test_a_price_that_lets_the_weights_vanish_is_lowered():
    model = PCSVM(C=10.0, spread=0.0, penalty=30.0).fit(BAGS, Y)
    assert model.penalty_[0] < 30.0
    assert np.log(30.0 / model.penalty_[0]) / np.log(4.0) % 1.0 < 1e-9
    assert model.weight_norm_[0] > 1e-3
    assert np.ptp(model.decision_function(BAGS)) > 1e-3


@pytest.mark.parametrize(
    ("lam", "message"), [(0.01, "only weights of 0"), (1.0, "the model is that of MISVM")]
)
def test_a_lambda_of_no_use_is_warned_of_with_the_range(lam, message):
    least, most = PCSVM().lambda_range(BAGS, Y)[0]
    with pytest.warns(UserWarning, match=f"{message}.*between {least:.3g} and {most:.3g}"):
        model = PCSVM(C=10.0, lam=lam).fit(BAGS, Y)
    np.testing.assert_allclose(model.lam_range_, [[least, most]])


def test_a_lambda_of_use_is_not():
    least, most = PCSVM().lambda_range(BAGS, Y)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PCSVM(C=10.0, lam=0.5 * (least + most)).fit(BAGS, Y)
    assert model.lam_[0] == 0.5 * (least + most)
    assert not hasattr(PCSVM(C=10.0).fit(BAGS, Y), "lam_range_")


def test_constraints_push_background_to_the_negative_side():
    """Instances of positive bags differ more, in units of the weights, than without."""
    plain = MISVM(C=10.0).fit(BAGS, Y)
    pushed = PCSVM(C=10.0, spread=0.5, penalty=0.3).fit(BAGS, Y)
    plain.centering = "bag"
    shares = []
    for model in (plain, pushed):
        norm, spread, _, shown = of(model)
        shares.append(np.mean((shown / norm) ** 2 / spread))
    assert shares[1] > 1.05 * shares[0]


def test_mist_that_fills_the_picture_is_not_taken_for_the_waterfall():
    """Figure 1 of the paper: distractors differ from the key instance, and from little else."""
    kind = {
        "n_features": 2, "separation": 8.0, "distractor_separation": 8.0, "distractor_cosine": 0.6,
        "distractor_share": 0.8, "n_distractors": None,
    }  # fmt: skip
    train = make_key_instance_bags(60, **kind)
    test = make_key_instance_bags(60, **kind, negative_distractor_share=1.0, random_state=1)
    for model, most, least in (
        (MISVM(C=10.0, kernel="linear"), 1.0, 0.9),
        (PCSVM(C=10.0, kernel="linear", spread=0.25, penalty=1.0), 0.2, 0.0),
    ):
        called_positive = model.fit(train.bags, train.y).predict(test.bags)
        assert least <= called_positive[test.y == 0].mean() <= most
        assert called_positive[test.y == 1].mean() > 0.95


def test_several_classes_have_constraints_of_their_own(tmp_path):
    data = make_three_class_bags(random_state=0)
    model = PCSVM(C=10.0).fit(data.bags, data.y)
    n_classes = len(model.classes_)
    assert model.constraints_.shape == (len(data.bags), n_classes)
    for output, label in enumerate(model.classes_):
        assert ((model.constraints_[:, output] == "none") == (data.y != label)).all()
    save(model, tmp_path / "model.bagwise")
    again = load(tmp_path / "model.bagwise")
    np.testing.assert_array_equal(again.constraints_, model.constraints_)
    np.testing.assert_array_equal(again.predict(data.bags), model.predict(data.bags))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_constraints_are_those_of_the_positive_class(kernel):
    plain = PCSVM(C=10.0, kernel=kernel).fit(BAGS, Y)
    names = np.where(Y == 1, "active", "idle")
    model = PCSVM(C=10.0, kernel=kernel, pos_label="active").fit(BAGS, names)
    np.testing.assert_array_equal(model.decision_function(BAGS), -plain.decision_function(BAGS))
    np.testing.assert_array_equal(model.constraints_, plain.constraints_)
    np.testing.assert_array_equal(
        model.predict(BAGS), np.where(plain.predict(BAGS), "active", "idle")
    )


def test_bags_of_one_instance_have_nothing_to_constrain():
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = (X[:, 0] > 0).astype(int)
    model = PCSVM(C=1.0).fit(X, y)
    assert set(model.constraints_[y == 1, 0]) == {"vacuous"}
