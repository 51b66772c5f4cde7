"""The commands and their options, as typer wants them. What they do is imported when they run."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli._data import DataRequest
from bagwise.cli._options import (
    Bag,
    Clusterer,
    CsvFile,
    Data,
    Json,
    Label,
    Missing,
    MissingSeen,
    Model,
    ModelFile,
    NoColor,
    Overwrite,
    Param,
    Positive,
    Quiet,
    Read,
    Scale,
    Seed,
    SetName,
)
from bagwise.cli._output import Output


def examples(first: str, second: str) -> str:
    """Return the end of a help page."""
    return f"\b\nExamples:\n  bagwise {first}\n  bagwise {second}"


def register(app: typer.Typer) -> None:
    """Add all commands, in the order of the help page."""
    app.command(epilog=examples("demo", "demo --seed 7 --output seven.html"))(demo)
    app.command(
        epilog=examples(
            "fit digits -m MIKernelSVM -o digits.model --param C=100 --cv 5",
            "fit molecules.csv --bag molecule --label active --positive yes -m SIL -o sil.model",
        )
    )(fit)
    app.command(
        epilog=examples(
            "predict digits.model digits --read images=test",
            "predict sil.model molecules.csv --bag molecule --label active -o labels.csv",
        )
    )(predict)
    app.command(
        epilog=examples(
            "explain digits.model digits --read n_bags=10 --top 2",
            "explain digits.model digits --read images=test --report digits.html",
        )
    )(explain)
    app.command(
        epilog=examples(
            "annotate digits -m SIL --read n_bags=50 --reject -0.5",
            "annotate photos.csv -m MIKernelSVM -o faces.csv",
        )
    )(annotate)
    app.command(
        epilog=examples(
            "cluster digits --clusters 2",
            "cluster molecules.csv --bag molecule --label active -m BAMIC -k 2 -o clusters.csv",
        )
    )(cluster)
    app.command(
        epilog=examples("inspect digits", "inspect molecules.csv --bag molecule --label active")
    )(inspect)
    app.command(
        epilog=examples(
            "pack digits digits.bags",
            "pack molecules.csv molecules.bags --bag molecule --label active",
        )
    )(pack)
    app.add_typer(_datasets())
    app.command(epilog=examples("doctor", "doctor --json"))(doctor)


def show_help(context: typer.Context) -> None:
    """Show the help page where a command of a group is missing."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def _datasets() -> typer.Typer:
    group = typer.Typer(
        name="datasets",
        help="List, show and fetch the classic data sets.",
        epilog=examples("datasets list", "datasets show musk1"),
        rich_markup_mode=None,
        invoke_without_command=True,
        callback=show_help,
    )
    group.command(
        "list", epilog=examples("datasets list", "datasets list --task multilabel --json")
    )(list_sets)
    group.command("show", epilog=examples("datasets show musk1", "datasets show corel3 --json"))(
        show_set
    )
    group.command("fetch", epilog=examples("datasets fetch musk1", "datasets fetch musk1 --json"))(
        fetch_set
    )
    return group


# ------------------------------------------------------------------------------------------ models


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the report goes.")
    ] = Path("bagwise-demo.html"),
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of the bags and the folds.")
    ] = 0,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Learn from embedded data and write an HTML report.

    Six well-known methods learn which bags of handwritten digits hold a 3, and which image it is.
    """
    from bagwise.cli._demo import run_demo

    run_demo(Output(json, quiet, not no_color), output, seed, overwrite=overwrite)


def fit(
    data: Data,
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the model goes. With --cv it may be left out: then nothing is saved.",
        ),
    ] = None,
    param: Param = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="KEY=V1,V2,...",
            help="Choose a parameter by cross-validation. May be repeated.",
        ),
    ] = None,
    positive: Positive = None,
    scale: Scale = True,
    cv: Annotated[
        int | None,
        typer.Option("--cv", min=2, metavar="N", help="Estimate the accuracy with N folds."),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            "--scoring",
            metavar="NAME",
            help="What --cv measures first and --grid chooses by, as scikit-learn calls it: "
            "roc_auc, balanced_accuracy, f1, ... Default: accuracy; average precision of label "
            "lists.",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="PATTERN",
            help="Keep bags of one group in one fold. PATTERN is a regular expression that finds "
            "the group in the name of a bag: '^[^_]+' for all before the first underscore.",
        ),
    ] = None,
    bag: Bag = None,
    label: Label = None,
    read: Read = None,
    missing: Missing = "error",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Learn from labelled bags and save the model.

    Features are scaled before, which the model keeps; --no-scale leaves them as they are.
    Clusterers need no labels. Most methods with key instances do not treat two labels alike, and
    ask for --positive unless the labels are 0 and 1, -1 and 1 or truth values.
    """
    from bagwise.cli._fit import run_fit

    run_fit(
        Output(json, quiet, not no_color),
        DataRequest(data, bag, tuple(label or ()), tuple(read or ()), missing),
        model,
        output,
        params=param,
        grid=grid,
        positive=positive,
        scale=scale,
        folds=cv,
        scoring=scoring,
        groups=groups,
        seed=seed,
        overwrite=overwrite,
    )


def predict(
    model_file: ModelFile,
    data: Data,
    output: CsvFile = None,
    bag: Bag = None,
    label: Label = None,
    read: Read = None,
    missing: MissingSeen = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Predict the labels of bags with a saved model.

    Prints CSV: the bag, its label or cluster and its score (of the second class, or of each class
    or cluster). If DATA has labels, the accuracy is said on stderr.
    """
    from bagwise.cli._predict import run_predict

    run_predict(
        Output(json, quiet, not no_color),
        model_file,
        DataRequest(data, bag, tuple(label or ()), tuple(read or ()), missing),
        output,
        overwrite=overwrite,
    )


def explain(
    model_file: ModelFile,
    data: Data,
    top: Annotated[
        int,
        typer.Option("--top", min=0, metavar="K", help="Instances to show after the key instance."),
    ] = 3,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write an HTML report of all bags."),
    ] = None,
    bag: Bag = None,
    label: Label = None,
    read: Read = None,
    missing: MissingSeen = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Show which instance of each bag decides.

    Also what it scores, and those that come next. Instances are counted from 0 inside their bag.
    """
    from bagwise.cli._explain import run_explain

    run_explain(
        Output(json, quiet, not no_color),
        model_file,
        DataRequest(data, bag, tuple(label or ()), tuple(read or ()), missing),
        top,
        report,
        overwrite=overwrite,
    )


def annotate(
    data: Data,
    model: Model,
    output: CsvFile = None,
    reject: Annotated[
        float | None,
        typer.Option(
            "--reject", metavar="SCORE", help="Instances that score below are none of these."
        ),
    ] = None,
    any_label: Annotated[
        bool, typer.Option("--any-label", help="Allow labels that the bag's list does not have.")
    ] = False,
    param: Param = None,
    scale: Scale = True,
    bag: Bag = None,
    label: Label = None,
    read: Read = None,
    missing: Missing = "error",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Give each instance one of the labels on the list of its bag.

    Lists are cells such as 'Ann;Bob' in the label column. Prints CSV: the bag, the instance
    (counted from 0), its name, its label (empty: none of these) and its score.
    """
    from bagwise.cli._annotate import run_annotate

    run_annotate(
        Output(json, quiet, not no_color),
        DataRequest(data, bag, tuple(label or ()), tuple(read or ()), missing),
        model,
        output,
        params=param,
        scale=scale,
        reject=reject,
        any_label=any_label,
        seed=seed,
        overwrite=overwrite,
    )


def cluster(
    data: Data,
    model: Clusterer = "M3IC",
    clusters: Annotated[
        int | None, typer.Option("--clusters", "-k", min=1, metavar="K", help="Number of clusters.")
    ] = None,
    output: CsvFile = None,
    param: Param = None,
    scale: Scale = True,
    bag: Bag = None,
    label: Label = None,
    read: Read = None,
    missing: Missing = "error",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Put bags into clusters; labels are not needed.

    Prints CSV: the bag, its cluster and, where the method has one, its key instance. If DATA has
    labels, the agreement with them is said on stderr.
    """
    from bagwise.cli._cluster import run_cluster

    run_cluster(
        Output(json, quiet, not no_color),
        DataRequest(data, bag, tuple(label or ()), tuple(read or ()), missing),
        model,
        output,
        clusters=clusters,
        params=param,
        scale=scale,
        seed=seed,
        overwrite=overwrite,
    )


# -------------------------------------------------------------------------------------------- data


def inspect(
    data: Data,
    bag: Bag = None,
    label: Label = None,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Show what is inside: format, guesses, counts, labels, bag sizes."""
    from bagwise.cli._inspect import run_inspect

    run_inspect(
        Output(json, quiet, not no_color),
        DataRequest(data, bag, tuple(label or ()), tuple(read or ())),
    )


def pack(
    data: Data,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="The store to make, by custom NAME.bags.")
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a store that is there.")
    ] = False,
    bag: Bag = None,
    label: Label = None,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Turn data into a store that opens at once.

    A store is a folder with the instances in one file, which is mapped into memory, not read, so
    it may be larger than the memory.
    """
    from bagwise.cli._pack import run_pack

    run_pack(
        Output(json, quiet, not no_color),
        DataRequest(data, bag, tuple(label or ()), tuple(read or ())),
        target,
        overwrite=overwrite,
    )


def list_sets(
    task: Annotated[
        str | None,
        typer.Option(
            "--task", metavar="TASK", help="classification, multiclass, multilabel or clustering."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """List the data sets, their sizes, and where they are found now."""
    from bagwise.cli._datasets import run_list

    run_list(Output(json, quiet, not no_color), task)


def show_set(
    name: SetName, json: Json = False, quiet: Quiet = False, no_color: NoColor = False
) -> None:
    """Show what is known of a data set: citation, licence, labels, address."""
    from bagwise.cli._datasets import run_show

    run_show(Output(json, quiet, not no_color), name)


def fetch_set(
    name: SetName, json: Json = False, quiet: Quiet = False, no_color: NoColor = False
) -> None:
    """Download a data set into the cache, unless it is here, and verify it."""
    from bagwise.cli._datasets import run_fetch

    run_fetch(Output(json, quiet, not no_color), name)


def doctor(json: Json = False, no_color: NoColor = False) -> None:
    """Show versions, threads, BLAS, compiler cache and data found."""
    from bagwise.cli._doctor import run_doctor

    run_doctor(Output(json, False, not no_color))
