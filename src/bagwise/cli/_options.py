"""The options that commands share."""

from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli._complete import (
    complete_clusterer,
    complete_data,
    complete_model,
    complete_path,
    complete_set,
)

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing about progress.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="Use no colours.")]

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file or folder of bags, or the name of a data set (see 'bagwise datasets list'); "
        "'digits' is embedded.",
        autocompletion=complete_data,
    ),
]
Bag = Annotated[
    str | None, typer.Option("--bag", metavar="COLUMN", help="Column that tells the bag of a row.")
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Column with the label of the bag. Again for more: one column for each label.",
    ),
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="Another option of the reader: features=a,b separator=; header=false "
        "label_separator=| instance_name=COLUMN instance_label=COLUMN format=csv "
        "label_table=FILE preset=clam on_empty=skip on_missing_label=drop ... (of "
        "bagwise.io.read); for digits, of load_digit_bags: images=test target=7 n_bags=500 "
        "multilabel=true ...",
    ),
]

Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="WHAT",
        help="What to do about missing values (empty, ?, NA, nan, null): 'impute' fills in the "
        "mean of the feature, which the model keeps; 'drop' leaves out instances that miss one; "
        "'error', the default, refuses them.",
    ),
]
MissingSeen = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="WHAT",
        help="What to do about missing values: 'impute' if the model was fitted so, which is then "
        "the default; 'drop' leaves out instances that miss one; 'error' refuses them.",
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL_FILE", help="What 'bagwise fit' saved.", autocompletion=complete_path
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Name of the method; letters may be small.",
        autocompletion=complete_model,
    ),
]
Clusterer = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Name of the method: M3IC, BAMIC, BagKMeans, CPM3C; letters may be small.",
        autocompletion=complete_clusterer,
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="KEY=VALUE", help="A parameter of the method. May be repeated."
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="LABEL",
        help="Which of two labels a bag has because of a few of its instances, such as 'active'.",
    ),
]
Scale = Annotated[
    bool,
    typer.Option("--scale/--no-scale", help="Scale every feature to mean 0 and variance 1 before."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of all that is drawn.")]
CsvFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the CSV to this file, not to stdout."
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace the file whatever it is, also if it is read. Without it only what bagwise "
        "wrote of the same kind is replaced.",
    ),
]
SetName = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a data set.", autocompletion=complete_set)
]
