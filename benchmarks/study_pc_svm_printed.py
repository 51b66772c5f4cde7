"""What the equations of the PC-SVM paper do as they are printed.

Three tables. *Equation (11)* on Musk 1 with an RBF kernel, features in [0, 1]: in how many positive
bags the matrix of the constraint is indefinite, as printed and as (8) and (9) imply it, the least
eigenvalue over the bags, and how far the constrained quantity is from (8), which is computed from
the feature vectors themselves, for random coefficients that sum to 0; as printed it is the one
without centring. *Equation (19)* on 16 bags in the plane: the length of the weights step by step,
as printed, with the constant that is missing, and with the cone of `PCSVM`, all by an interior-
point method from the same feasible direction. *The grid for lambda*: between which values it says
something and can be met, on the paper's five sets, for the smallest and the largest of the paper's
gammas; the grid is 0.01, 0.1, 1, 10 and 100.

    BAGWISE_DATA=... python benchmarks/study_pc_svm_printed.py
"""

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import MinMaxScaler

from bagwise.datasets import fetch, make_key_instance_bags
from bagwise.exceptions import SolverError
from bagwise.preprocessing import InstanceTransformer
from bagwise.solvers import solve_qp
from bagwise.svm import PCSVM

SETS = ("musk1", "musk2", "elephant", "fox", "tiger")
GAMMAS = (0.2, 1.0)
STEPS = 12


def scaled(name):
    """Return the bags of a set with features from 0 to 1."""
    return InstanceTransformer(MinMaxScaler()).fit_transform(fetch(name).bags)


def parts(bags):
    """Return the instances of each positive bag, as slices."""
    positive = np.flatnonzero(np.asarray(bags.labels) == 1)
    return [slice(bags.offsets[i], bags.offsets[i + 1]) for i in positive]


# ---------------------------------------------------------------------------------- equation (11)


def centred_energies(K, inside):
    """Return the matrix of (11) for a bag: as printed, as (8) and (9) imply it, uncentred."""
    rows = K[inside]
    energy = rows.T @ rows
    printed = energy - energy.mean(axis=0) - energy.mean(axis=1)[:, None] + energy.mean()
    about = rows - rows.mean(axis=0)
    return printed, about.T @ about, energy


def distances(features, inside, alpha):
    """Return (8): squared distances of a bag's instances from a line through their mean."""
    points = features[inside] - features[inside].mean(axis=0)
    w = alpha @ features
    along = points @ w / np.linalg.norm(w)
    return float((points**2).sum() - (along**2).sum())


def equation_11():
    bags = scaled("musk1")
    K = rbf_kernel(np.asarray(bags.instances, np.float64), gamma=GAMMAS[0])
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(0)
    rows = {"as printed": [], "as implied": []}
    for inside in parts(bags):
        own = K[inside, inside]
        spread = np.trace(own) - own.mean() * len(own)
        alpha = rng.normal(size=len(K))
        alpha -= alpha.mean()
        printed, implied, energy = centred_energies(K, inside)
        truth = distances(features, inside, alpha)
        length = alpha @ K @ alpha
        off_energy = abs(alpha @ (printed - energy) @ alpha) / (alpha @ energy @ alpha)
        for name, matrix in zip(rows, (printed, implied), strict=True):
            least = np.linalg.eigvalsh(spread * K - matrix)[0]
            error = abs(spread - alpha @ matrix @ alpha / length - truth) / max(truth, 1e-12)
            rows[name].append((least, error, off_energy))
    print("| (11) | indefinite | least eigenvalue | off (8) by | off the uncentred energy by |")
    print("|---|---|---|---|---|")
    for name, found in rows.items():
        least, error, off_energy = np.array(found).T
        last = f"{off_energy.max():.0e}" if name == "as printed" else ""
        print(
            f"| {name} | {(least < -1e-8).sum()} of {len(least)} | {least.min():.2g} | "
            f"up to {100 * error.max():.2g} % | {last} |"
        )


# ---------------------------------------------------------------------------------- equation (19)


def root_of(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


class Toy:
    """Bags in the plane whose positive ones are long in one direction, and a bound on that."""

    def __init__(self, lam_share, C=10.0):
        data = make_key_instance_bags(
            16, n_features=2, separation=8.0, distractor_separation=8.0, distractor_cosine=0.6,
            distractor_share=1.0, n_distractors=None,
        )  # fmt: skip
        X, self.C = data.bags.instances, C
        self.bags = [X[inside] for inside in parts(data.bags)]
        self.negatives = X[np.repeat(data.y == 0, data.bags.sizes)]
        centred = [bag - bag.mean(axis=0) for bag in self.bags]
        self.scatters = [A.T @ A for A in centred]
        self.spreads = [float((A**2).sum()) for A in centred]
        angles = np.linspace(-np.pi / 2, np.pi / 2, 2001)
        found = [(self.needed(np.array([np.cos(a), np.sin(a)])), a) for a in angles]
        self.least, angle = min(found)
        self.start = np.array([np.cos(angle), np.sin(angle)])
        self.most = max(o / len(bag) for o, bag in zip(self.spreads, self.bags, strict=True))
        self.lam = self.least + lam_share * (self.most - self.least)

    def needed(self, u):
        """Return the least bound that a unit vector meets."""
        pairs = zip(self.spreads, self.scatters, self.bags, strict=True)
        return max((o - u @ scatter @ u) / len(bag) for o, scatter, bag in pairs)

    def cones(self, how, w, n_slack):
        """Return the linearised constraints at ``w`` as cones in weights, constant and slacks."""
        out = []
        for o, scatter, bag in zip(self.spreads, self.scatters, self.bags, strict=True):
            bound = self.lam * len(bag)
            if o <= bound:
                continue
            if how == "cone":
                head, level = scatter @ w / np.sqrt(w @ scatter @ w), 0.0
                rows, levels = [head, *(np.sqrt(o - bound) * np.eye(2))], [0.0, 0.0, 0.0]
            else:
                head, level = 2.0 * bound * w, -bound * (w @ w) * (2.0 if how == "printed" else 1.0)
                rows = [head, *(2.0 * root_of(o * np.eye(2) - scatter)), -head]
                levels = [1.0 + level, 0.0, 0.0, 1.0 - level]
            matrix = np.hstack([np.array(rows), np.zeros((len(rows), 1 + n_slack))])
            out.append((sp.csr_array(matrix), np.array(levels)))
        return out

    def step(self, how, w):
        """Return the weights after one step, with the best instances by the last ones."""
        keys = np.array([bag[np.argmax(bag @ w)] for bag in self.bags])
        rows = np.vstack([keys, -self.negatives])
        sign = np.repeat([1.0, -1.0], [len(keys), len(self.negatives)])
        n = len(rows)
        wanted = np.hstack([rows, sign[:, None], np.eye(n)])
        answer = solve_qp(
            sp.diags_array(np.concatenate([np.ones(2), np.zeros(1 + n)])),
            np.concatenate([np.zeros(3), np.full(n, self.C)]),
            -wanted,
            -np.ones(n),
            lower=np.concatenate([np.full(3, -np.inf), np.zeros(n)]),
            cones=self.cones(how, w, n),
        )
        return answer.x[:2]

    def lengths(self, how):
        """Return the length of the weights after each step, and in words how it ended."""
        w, out = self.start, []
        for _ in range(STEPS):
            try:
                w = self.step(how, w)
            except SolverError as error:
                return out, str(error)
            out.append(float(np.linalg.norm(w)))
        return out, ""


def equation_19():
    for share in (0.3, 0.05):
        toy = Toy(share)
        print(f"\n{toy.lam / toy.least:.2f} times the least lambda that can be met")
        print("| (19) | 1 | 2 | 3 | 5 | 8 | 12 |\n|---|---|---|---|---|---|---|")
        for how in ("printed", "with the constant", "cone"):
            lengths, end = toy.lengths(how)
            shown = [
                f"{lengths[k - 1]:.3g}" if k <= len(lengths) else "-" for k in (1, 2, 3, 5, 8, 12)
            ]
            print(f"| {how} | " + " | ".join(shown) + " | " + end)


# ---------------------------------------------------------------------------------- the grid


def grid():
    print("\n| set | " + " | ".join(f"gamma {gamma}" for gamma in GAMMAS) + " |")
    print("|---|" + "---|" * len(GAMMAS))
    for name in SETS:
        bags = scaled(name)
        ranges = [PCSVM(gamma=gamma).lambda_range(bags, bags.labels)[0] for gamma in GAMMAS]
        print(
            f"| {name} | " + " | ".join(f"{low:.2f} to {high:.2f}" for low, high in ranges) + " |"
        )


if __name__ == "__main__":
    equation_11()
    equation_19()
    grid()
