"""The estimators that the common tests run on, and the checks that cannot hold for them."""

from sklearn.preprocessing import StandardScaler

from bagwise import all_estimators
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL, MIKernelSVM

#: Every estimator as it comes, and the transformer, which needs an argument.
DEFAULTS = [
    *(cls() for _, cls in all_estimators()),
    InstanceTransformer(StandardScaler()),
]

#: Other parameters that take other paths through the code; these get the bag checks only.
VARIANTS = [
    MIKernelSVM(normalization="feature_space"),
    MIKernelSVM(normalization="feature_space", kernel="poly", coef0=1.0),
    SIL(kernel="poly", degree=2, coef0=1.0),
    SIL(C=0.1, gamma="median", class_weight="balanced"),
    InstanceTransformer(StandardScaler(with_mean=False)),
]

#: Checks of scikit-learn that cannot hold: class name -> {check: the mathematical reason}.
EXPECTED_SKLEARN_FAILURES: dict[str, dict[str, str]] = {}

#: Checks of ours that cannot hold, likewise.
EXPECTED_BAG_FAILURES: dict[str, dict[str, str]] = {}


def expected_sklearn_failures(estimator):
    return EXPECTED_SKLEARN_FAILURES.get(type(estimator).__name__, {})


def expected_bag_failures(estimator):
    return EXPECTED_BAG_FAILURES.get(type(estimator).__name__, {})
