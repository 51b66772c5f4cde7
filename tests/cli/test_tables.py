"""What commands print, found by heading, beside what the library answers for the same seed."""

import json
import re

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    confusion_matrix,
    label_ranking_average_precision_score,
    normalized_mutual_info_score,
)
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise as library
from bagwise import Bags
from bagwise.cluster import M3IC
from bagwise.datasets import available, info, load_digit_bags
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL, MIKernelSVM
from cli.tables import csv_rows, entries, text_rows
from inspection.pages import Page

N = 24
SEED = 3


@pytest.fixture
def run(workshop, bagwise):
    """Run a command line that succeeds: its lines, its object, and what else it said."""

    def run(line):
        code, text, notes = bagwise(line)
        assert code == 0, notes
        code, out, _ = bagwise(f"{line} --json")
        assert code == 0
        return text, json.loads(out), notes

    return run


def make_bags(n_classes=2):
    """Return bags of one to three named instances that no model gets all right."""
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 2, 3, 3, 3])[np.arange(N) % 6]
    offsets = np.append(0, sizes.cumsum())
    y = np.arange(N) % n_classes
    values = rng.normal(size=(sizes.sum(), 2)) + 1.5 * np.repeat(y, sizes)[:, None] * [1, -1]
    return Bags(
        values,
        offsets,
        labels=np.array(["ant", "bee", "cat"])[y],
        bag_names=[f"b{i:02}" for i in range(N)],
        instance_names=[f"i{row}" for row in range(len(values))],
    )


def scaled(model):
    return make_pipeline(InstanceTransformer(StandardScaler()), model)


def inner(pipeline, bags):
    """Return the model behind the scaler, and the bags that it sees."""
    return pipeline[-1], pipeline[:-1].transform(bags)


# --------------------------------------------------------------------------------------- predict


@pytest.mark.parametrize("n_classes", [2, 3])
def test_predict(run, n_classes):
    bags = make_bags(n_classes)
    bags.write("d.bags")
    model = SIL(C=0.1, pos_label="bee" if n_classes == 2 else None).fit(bags, bags.labels)
    library.save(model, "m.model")
    text, answer, notes = run("predict m.model d.bags")
    predicted, scores = model.predict(bags), model.decision_function(bags)
    right = np.mean(predicted == bags.labels)
    assert 0.5 < right < 1
    told = f"Accuracy: {right:.1%} of 24 bags. These are the bags it learned from: "
    assert notes.splitlines()[-1] == f"{told}expect less on others."
    assert (answer["accuracy"], answer["metric"]) == (right, "accuracy")
    assert answer["classes"] == model.classes_.tolist()
    if n_classes == 2:
        wanted = [{"score": score} for score in scores.tolist()]
        assert [bag["score"] for bag in answer["bags"]] == scores.tolist()
    else:
        names = ("ant", "bee", "cat")
        told = [dict(zip(names, row, strict=True)) for row in scores.tolist()]
        wanted = [{f"score {name}": row[name] for name in names} for row in told]
        assert [bag["score"] for bag in answer["bags"]] == told
    rows = csv_rows(text)
    for row, name, label, columns in zip(rows, bags.bag_names, predicted, wanted, strict=True):
        assert row == {"bag": name, "predicted": label} | {k: repr(v) for k, v in columns.items()}
    assert [bag["predicted"] for bag in answer["bags"]] == predicted.tolist()
    assert [bag["bag"] for bag in answer["bags"]] == bags.bag_names.tolist()


def test_predict_label_lists(run, bagwise):
    assert bagwise("fit photos.csv -m SIL -o p.model -p C=0.02")[0] == 0
    text, answer, notes = run("predict p.model photos.csv")
    bags, model = Bags.read("photos.csv"), library.load("p.model")
    predicted, scores = model.predict(bags), model.decision_function(bags)
    names = ["Ann", "Bob", "Cy"]
    precision = label_ranking_average_precision_score(bags.labels, scores)
    assert f"Average precision: {precision:.1%} of 24 bags" in notes
    assert answer["accuracy"] == pytest.approx(precision)
    for row, told, given, values in zip(
        csv_rows(text), answer["bags"], predicted, scores.tolist(), strict=True
    ):
        lists = [name for name, wanted in zip(names, given, strict=True) if wanted]
        assert (row["predicted"].split(";") if row["predicted"] else []) == lists
        assert told["predicted"] == lists
        assert [float(row[f"score {name}"]) for name in names] == values
        assert told["score"] == dict(zip(names, values, strict=True))


# --------------------------------------------------------------------------------------- explain


@pytest.mark.parametrize(
    ("cls", "positive", "n_classes"),
    [(SIL, {"pos_label": "bee"}, 2), (SIL, {}, 3), (MIKernelSVM, {}, 2)],
)
def test_explain(run, cls, positive, n_classes):
    bags = make_bags(n_classes)
    bags.write("d.bags")
    model = cls(C=0.1, **positive).fit(bags, bags.labels)
    library.save(model, "m.model")
    text, answer, _ = run("explain m.model d.bags --top 1")
    predicted, keys = model.predict(bags), model.key_instances(bags)
    scores, inside = model.decision_function(bags), model.instance_decision_function(bags)
    if n_classes > 2:  # those for the class predicted
        column = np.searchsorted(model.classes_, predicted)
        scores, inside = (
            scores.max(axis=1),
            inside[np.arange(len(inside)), column.repeat(bags.sizes)],
        )
    rows = text_rows(text)
    assert answer["accuracy"] == np.mean(predicted == bags.labels)
    assert len(rows) == len(answer["bags"]) == N
    for i, (row, told) in enumerate(zip(rows, answer["bags"], strict=True)):
        span, key = slice(*bags.offsets[i : i + 2]), int(keys[i])
        within, names = inside[span], bags.instance_names[span]
        side = 1 if within[key] == within.max() else -1
        ranked = sorted(set(range(len(within))) - {key}, key=lambda place: -side * within[place])
        first, *others = (
            {"instance": place, "name": names[place], "score": within[place]}
            for place in [key, *ranked[:1]]
        )
        words = [f"{o['instance']} {o['name']} ({o['score']:.3g})" for o in others] or ["-"]
        assert row == {
            "bag": f"b{i:02}",
            "predicted": predicted[i],
            "score": f"{scores[i]:.3g}",
            "key instance": f"{key} {names[key]}",
            "its score": f"{within[key]:.3g}",
            "next: instance (score)": words[0],
        }
        assert told == {
            "bag": f"b{i:02}",
            "predicted": predicted[i],
            "score": scores[i],
            "key": first,
            "next": others,
        }


def test_explain_label_lists(run, bagwise):
    assert bagwise("fit photos.csv -m SIL -o p.model -p C=0.02")[0] == 0
    text, answer, _ = run("explain p.model photos.csv --top 0")
    bags, names = Bags.read("photos.csv"), ["Ann", "Bob", "Cy"]
    model, seen = inner(library.load("p.model"), bags)
    scores, keys = model.decision_function(seen), model.key_instances(seen)
    inside = model.instance_decision_function(seen)
    told = iter(zip(text_rows(text), answer["bags"], strict=True))
    for i in range(N):
        for j in np.flatnonzero(scores[i] > 0) if scores[i].max() > 0 else [scores[i].argmax()]:
            row, bag = next(told)
            at = bags.offsets[i] + keys[i, j]
            assert row == {
                "bag": bags.bag_names[i],
                "predicted": names[j],
                "score": f"{scores[i, j]:.3g}",
                "key instance": f"{keys[i, j]} {bags.instance_names[at]}",
                "its score": f"{inside[at, j]:.3g}",
                "next: instance (score)": "-",
            }
            assert (bag["bag"], bag["predicted"]) == (row["bag"], row["predicted"])
            assert (bag["score"], bag["key"]["score"]) == (scores[i, j], inside[at, j])
    assert next(told, None) is None


def test_report_says_what_the_command_says(run, workshop):
    data = load_digit_bags(30)
    library.save(SIL(C=0.5).fit(data.bags, data.y), "d.model")
    _, answer, notes = run("explain d.model digits --read n_bags=30 --report r.html")
    page = Page((workshop / "r.html").read_text(encoding="utf-8"))
    assert page.tiles["accuracy"][0] == f"{100 * answer['accuracy']:.1f} %"
    assert page.tiles["key instance found"][0] == f"{100 * answer['key_success']:.1f} %"
    n_found, n_holding = map(int, re.findall(r"found in (\d+) of the (\d+) bags", notes)[0])
    assert answer["key_success"] == n_found / n_holding
    assert n_holding == data.y.sum()


# ------------------------------------------------------------------------------------------- fit


def certificate_line(result):
    """Return what is said of a certificate, written down anew."""
    gap = f"at most {result.gap:.0e} above the optimum, " if result.gap > 0 else "at the optimum, "
    gap = gap if np.isfinite(result.lower_bound) else ""
    starts = ""
    if len(result.ends):
        low, high = (f"{end:.6g}" for end in (min(result.ends), max(result.ends)))
        where = f"at {low}" if low == high else f"between {low} and {high}"
        starts = f"best of {len(result.ends)} starts, which ended {where}, "
    told = f"{result.status}, objective {result.objective:.6g}, {gap}{starts}"
    return f"{told}{result.n_iter:,} iteration"


def assert_certificate(told, text, result):
    finite = np.isfinite(result.lower_bound)
    seconds = told.pop("solve_seconds")
    assert told == {
        "status": str(result.status),
        "objective": result.objective,
        "lower_bound": result.lower_bound if finite else None,
        "gap": result.objective - result.lower_bound if finite else None,
        "n_iter": result.n_iter,
        "n_starts": max(1, len(result.ends)),
        "spread": result.spread,
    }
    assert seconds > 0
    assert certificate_line(result) in text


@pytest.mark.parametrize("model", ["SIL -p C=0.5", "MISVM -p C=0.5", "SIL -p max_iter=1"])
def test_fit(run, workshop, model):
    bags = make_bags()
    bags.write("d.bags")
    text, answer, _ = run(f"fit d.bags -m {model} --positive bee -o m.model --seed {SEED}")
    fitted = library.load("m.model")
    right = np.mean(fitted.predict(bags) == bags.labels)
    assert f"Accuracy on the bags it learned from: {right:.1%} (" in text
    assert answer["training_accuracy"] == right
    assert_certificate(answer["certificate"], text, fitted[-1].result_)
    size = (workshop / "m.model").stat().st_size
    assert f"Saved: m.model ({size / 1000:,.1f} kB)" in text
    assert answer["model"]["bytes"] == size
    name, _, setting = model.partition(" -p ")
    assert text.startswith(
        f"{name}({setting}) on d.bags: 24 bags, {bags.n_instances} instances, 2 features; "
        "bags per label: ant 12, bee 12\n"
    )
    assert answer["model"]["parameters"] == {k: float(v) for k, v in [setting.split("=")]}
    assert answer["data"] == {
        "name": "d.bags",
        "bags": N,
        "instances": bags.n_instances,
        "features": 2,
        "labels": [{"label": label, "name": None, "bags": 12} for label in ("ant", "bee")],
        "guessed": answer["data"]["guessed"],
    }


def test_fit_validated(run):
    bags = make_bags()
    bags.write("d.bags")
    line = (
        "fit d.bags -m SIL --positive bee -o m.model --cv 4 --grid C=0.01,1 --grid gamma=0.1,5 "
        f"--seed {SEED}"
    )
    text, answer, _ = run(line)
    folds = StratifiedKFold(4, shuffle=True, random_state=SEED)
    means = {
        (C, gamma): cross_val_score(
            scaled(SIL(C=C, gamma=gamma, pos_label="bee")), bags, bags.labels, cv=folds
        ).mean()
        for C in (0.01, 1)
        for gamma in (0.1, 5)
    }
    C, gamma = best = max(means, key=means.get)
    assert answer["model"]["parameters"] == {"C": C, "gamma": gamma}
    assert answer["search"]["mean"] == pytest.approx(means[best])
    assert (
        f"Chosen: C={C}, gamma={gamma}, with {means[best]:.1%} accuracy the best of 4 settings"
    ) in text
    found = answer["cross_validation"]
    values = np.array(found["values"])
    assert len(values) == 4
    assert found["mean"] == pytest.approx(values.mean())
    assert found["standard_error"] == pytest.approx(values.std(ddof=1) / 2)
    assert found["standard_error"] > 0
    mean, error = values.mean(), 100 * values.std(ddof=1) / 2
    assert f"Cross-validated accuracy: {mean:.1%} ± {error:.1f}, balanced accuracy " in text
    balanced, auc = found["others"]
    for told, scale, unit, digits in ((balanced, 100, "%", 1), (auc, 1, "", 3)):
        values = scale * np.array(told["values"])
        error = values.std(ddof=1) / 2
        told_error = scale * told["standard_error"]
        assert (scale * told["mean"], told_error) == pytest.approx((values.mean(), error))
        words = f"{told['metric']} {values.mean():.{digits}f}{unit} ± {error:.{digits}f}"
        assert words in text
    assert (balanced["metric"], auc["metric"]) == ("balanced accuracy", "AUC")
    assert found["baseline"] == {"label": "ant", "accuracy": 0.5}
    assert "Baseline: always answering ant has 50.0% accuracy\n" in text


# --------------------------------------------------------------------------- cluster and annotate


@pytest.mark.parametrize("scale", [True, False])
def test_cluster(run, scale):
    bags = make_bags()
    bags.write("d.bags")
    options = "" if scale else " --no-scale"
    text, answer, notes = run(f"cluster d.bags -m M3IC -k 2 -p C=2 --seed {SEED}{options}")
    model = M3IC(2, C=2, random_state=SEED)
    seen = InstanceTransformer(StandardScaler()).fit_transform(bags) if scale else bags
    found, keys = model.fit_predict(seen), model.key_instances_
    for row, told, name, cluster, key in zip(
        csv_rows(text), answer["bags"], bags.bag_names, found.tolist(), keys.tolist(), strict=True
    ):
        assert row == {"bag": name, "cluster": str(cluster), "key instance": str(key)}
        assert told == {"bag": name, "cluster": cluster, "key": key}
    counts = confusion_matrix(np.unique(bags.labels, return_inverse=True)[1], found)
    accuracy = counts[linear_sum_assignment(-counts)].sum() / N
    nmi = normalized_mutual_info_score(bags.labels, found, average_method="geometric")
    assert (answer["accuracy"], answer["nmi"]) == (pytest.approx(accuracy), pytest.approx(nmi))
    assert accuracy != pytest.approx(nmi, abs=0.01)
    assert f"Against the labels: accuracy {accuracy:.1%}, NMI {nmi:.3f}" in notes
    sizes = np.bincount(found)
    assert answer["clusters"] == [{"cluster": i, "bags": n} for i, n in enumerate(sizes)]
    assert f"Clusters: 0 ({sizes[0]} bags), 1 ({sizes[1]} bags)\n" in notes
    assert_certificate(answer["certificate"], notes, model.result_)


@pytest.mark.parametrize("options", ["", "--any-label", "--reject 0"])
def test_annotate(run, options):
    text, answer, notes = run(f"annotate photos.csv -m SIL -p C=0.02 {options}")
    bags = Bags.read("photos.csv")
    pipeline = scaled(SIL(C=0.02)).fit(bags, bags.labels)
    model, seen = inner(pipeline, bags)
    scores = model.instance_decision_function(seen)
    names = ["Ann", "Bob", "Cy"]
    n_right = n_named = 0
    rows = iter(zip(csv_rows(text), answer["instances"], strict=True))
    for i, bag in enumerate(bags.bag_names):
        listed = range(3) if options == "--any-label" else np.flatnonzero(bags.labels[i])
        for place, at in enumerate(range(bags.offsets[i], bags.offsets[i + 1])):
            column = max(listed, key=scores[at].__getitem__)
            score = scores[at, column]
            label = None if options == "--reject 0" and score < 0 else names[column]
            row, told = next(rows)
            wanted = {
                "bag": bag,
                "instance": place,
                "name": bags.instance_names[at],
                "label": label,
                "score": score,
            }
            assert told == wanted
            assert row == {
                **{key: str(value) for key, value in wanted.items()},
                "label": label or "",
                "score": repr(float(score)),
            }
            n_named += label is not None
            n_right += label == bags.instance_labels[at]
    n = bags.n_instances
    assert (answer["named"], answer["rejected"]) == (n_named, n - n_named)
    assert answer["instance_accuracy"] == pytest.approx(n_right / n)
    assert f"{n_named} instances named, {n - n_named} none of these." in notes
    assert f"Right: {n_right / n:.1%} of the instances" in notes
    assert_certificate(answer["certificate"], notes, model.result_)


# ------------------------------------------------------------------------------------------- data


def test_inspect(run):
    bags = make_bags(3)
    values = bags.instances.copy()
    values[4] = values[0]
    values = np.column_stack([values, np.full(len(values), 7.0)])
    Bags(values, bags.offsets, labels=bags.labels, feature_names=["p", "q", "r"]).write("d.bags")
    text, answer, _ = run("inspect d.bags")
    told = entries(text, 12)
    sizes, counts = np.unique(bags.sizes, return_counts=True)
    assert sizes.tolist() == [1, 2, 3]
    assert len(set(counts.tolist())) == 3
    assert told["size"] == [f"24 bags, {len(values)} instances, 3 features (float64)"]
    assert told["labels"] == ["ant: 8, bee: 8, cat: 8"]
    assert told["features"] == ["p, q, r"]
    assert told["constant"] == ["1 feature: r"]
    assert told["duplicates"] == ["1 instance equal to an earlier one"]
    summary, *bars = told["bag sizes"]
    assert summary == f"1 to 3 instances, median {np.median(bags.sizes):g}"
    for line, size, count in zip(bars, sizes, counts, strict=True):
        first, number, bar = line.split()
        assert (int(first), int(number)) == (size, count)
        assert len(bar) == np.ceil(40 * count / counts.max())
    assert answer["bag_sizes"]["histogram"] == [
        {"from": size, "to": size, "bags": count} for size, count in zip(sizes, counts, strict=True)
    ]
    assert (answer["bags"], answer["instances"], answer["features"]) == (24, len(values), 3)
    assert (answer["constant_features"], answer["duplicate_instances"]) == (["r"], 1)


def test_pack(run):
    text, answer, _ = run("pack photos.csv p.bags --overwrite")
    bags, store = Bags.open("p.bags"), answer["store"]
    numbers = (len(bags), bags.n_instances, bags.n_features)
    assert numbers == (24, 30, 2)
    assert tuple(store[name] for name in ("bags", "instances", "features")) == numbers
    assert text.startswith("p.bags: 24 bags, 30 instances, 2 features, float64, labels; ")


def test_list_of_data_sets(run):
    text, answer, _ = run("datasets list")
    rows = text_rows(text)
    assert [row["name"] for row in rows] == [one["name"] for one in answer["sets"]] == available()
    for row, told in zip(rows, answer["sets"], strict=True):
        entry = info(row["name"])
        assert row == {
            "name": entry.name,
            "task": entry.task,
            "bags": f"{entry.n_bags:,}",
            "instances": f"{entry.n_instances:,}",
            "features": f"{entry.n_features:,}",
            "classes": f"{len(entry.label_names):,}",
            "where": told["found"],
        }
        assert (told["bags"], told["instances"]) == (entry.n_bags, entry.n_instances)
        assert (told["features"], told["classes"]) == (entry.n_features, len(entry.label_names))


def test_entry_of_a_data_set(run):
    text, answer, _ = run("datasets show musk1")
    told, entry = entries(text, 10), info("musk1")
    assert told["size"] == ["92 bags, 476 instances, 166 features"]
    counts = dict(zip(entry.label_names, entry.label_counts, strict=True))
    assert counts["musk"] == 47
    assert told["labels"] == [", ".join(f"{k} ({n} bags)" for k, n in counts.items())]
    assert answer["set"]["labels"] == [{"name": k, "bags": n} for k, n in counts.items()]
    for name, value in (("cite", entry.citation), ("licence", entry.licence), ("note", entry.note)):
        assert " ".join(told.get(name, [])).split() == value.split()
