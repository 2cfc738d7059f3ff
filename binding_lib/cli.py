"""The door from a shell: `binding-lib` parses, calls the library, prints a table or JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from binding_lib.concepts import ConceptSpace
from binding_lib.encoders import MissingExtraError, list_encoders, load_encoder
from binding_lib.files import atomic_path
from binding_lib.readings import decompose_captions


class _OneSentenceErrors(TyperGroup):
    """Prints what the library refuses as one sentence, with exit code 2 and no traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, OSError, MissingExtraError) as error:
            typer.echo(f"binding-lib: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(cls=_OneSentenceErrors, no_args_is_help=True, add_completion=False)

JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", dir_okay=False, help="Write everything printed, as JSON."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Differ from the preset; repeatable."),
]


@app.callback()
def main() -> None:
    """How embedding models bind concepts: the course's measurements, from a shell."""


@app.command()
def encoders(json_file: JsonFile = None) -> None:
    """List the encoders that can be loaded by name."""
    table = list_encoders()
    _print_table(table)
    _write_json(json_file, {"encoders": table.to_dict("records")})


@app.command()
def decompose(
    encoder: Annotated[str, typer.Option(help="The encoder's name; see `encoders`.")] = "minilm",
    scenes: Annotated[int, typer.Option(min=100, help="Scenes, nine tenths to fit.")] = 13_000,
    objects: Annotated[int, typer.Option(min=1, help="Objects a scene.")] = 2,
    probes: Annotated[bool, typer.Option(help="Read the reconstructions with probes too.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the scenes.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Is a caption's embedding the sum of its objects' embeddings? R², retrieval, probing."""
    result = decompose_captions(load_encoder(encoder), scenes, objects, probes=probes, seed=seed)
    typer.echo(f"{encoder}: {result.n_train} scenes to fit, {result.n_test} to test")
    for name in ("real", "reconstructed"):
        table = getattr(result, name)
        if len(table):
            typer.echo(f"\n{name} embeddings")
            _print_table(table)
    content = {
        "encoder": encoder,
        "seed": seed,
        "objects": objects,
        "n_train": result.n_train,
        "n_test": result.n_test,
        "real": result.real.to_dict("records"),
        "reconstructed": result.reconstructed.to_dict("records"),
    }
    _write_json(json_file, content)


@app.command()
def complexity(
    encoder: Annotated[str, typer.Option(help="The encoder's name; see `encoders`.")] = "minilm",
    coverages: Annotated[
        str, typer.Option(help="Shares of the objects to fit on, with commas between.")
    ] = "0.3,0.9",
    approximators: Annotated[
        str,
        typer.Option(
            help="Names with commas between; also mlp-1024, product-units-256, xgboost, "
            "random-forest."
        ),
    ] = "additive,per-object,global,mlp-256",
    scenes: Annotated[int, typer.Option(min=100, help="Scenes of any objects.")] = 8000,
    seed: Annotated[int, typer.Option(min=0, help="Of splits and approximators.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Which rule or list of cases gives an encoder's embeddings? Objects recognised, bits."""
    from binding_lib.approximators import make_approximator
    from binding_lib.complexity import complexity_curve, real_curve
    from binding_lib.curve_data import curve_data
    from binding_lib.description import description_length

    try:
        shares = [float(share) for share in coverages.split(",")]
    except ValueError:
        raise ValueError(f"expected coverages such as 0.5,0.9, got {coverages!r}") from None
    chosen = [make_approximator(name, seed) for name in approximators.split(",")]
    data = curve_data(encoder, shares, [seed], scenes, n_probe_scenes=scenes)
    real = real_curve(data.scenes, data.embeddings, shares, data.probes, [seed])
    curve = complexity_curve(data.scenes, data.embeddings, chosen, shares, data.probes, [seed])
    curve = description_length(curve)
    names = ["concept_recognition", "object_recognition", "swap_accuracy", "r2"]
    typer.echo(f"{encoder}: real embeddings")
    _print_table(real[["coverage", *names[:3], "n_test"]])
    typer.echo("\napproximated embeddings")
    numbers = [*names, "n_parameters", "code_bits", "seconds"]
    _print_table(curve[["approximator", "coverage", *numbers]])
    content = {
        "encoder": encoder,
        "real": json.loads(real.to_json(orient="records", double_precision=15)),
        "approximated": json.loads(curve.to_json(orient="records", double_precision=15)),
    }
    _write_json(json_file, content)


@app.command()
def train(
    out: Annotated[Path, typer.Option(help="Folder of the checkpoint; goes on from one there.")],
    concepts: Annotated[int, typer.Option(min=2, help="Concepts, C.")] = 2,
    values: Annotated[int, typer.Option(min=2, max=10_000, help="Values of each, V.")] = 20,
    coverage: Annotated[float, typer.Option(help="Share of the objects that training sees.")] = 0.8,
    preset: Annotated[str, typer.Option(help="smoke, laptop, gpu, paper or auto.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Of the split, weights and batches.")] = 0,
    setting: Settings = None,
    json_file: JsonFile = None,
) -> None:
    """Train a dual encoder; how are concepts, objects and swaps recognised as it learns?"""
    from binding_lib.training import train_dual_encoder

    space = ConceptSpace.grid(concepts, values)
    overrides = _overrides(setting, space="--concepts and --values", preset="--preset")
    trained = train_dual_encoder(space, coverage, preset, seed, folder=out, **overrides)
    _report(trained, out, ["objects", "candidates", "concept", "object", "swap"], json_file)


@app.command()
def train_pocket(
    out: Annotated[Path, typer.Option(help="Folder of the checkpoint; goes on from one there.")],
    coverage: Annotated[float, typer.Option(help="Share of the objects that training sees.")] = 0.8,
    seed: Annotated[int, typer.Option(min=0, help="Of the split, weights and batches.")] = 0,
    setting: Settings = None,
    json_file: JsonFile = None,
) -> None:
    """Train a pocket pair of image and text encoders; `pocket-clip:low` and `:high` are such."""
    from binding_lib.pocket_training import train_pocket_clip

    overrides = _overrides(setting)
    trained = train_pocket_clip(coverage, seed, folder=out, **overrides)
    _report(trained, out, ["objects", "n_scenes", "colour", "shape", "object", "swap"], json_file)


@app.command()
def sweep(
    store: Annotated[Path, typer.Option(help="Folder of the rows; only the missing are made.")],
    models: Annotated[int, typer.Option(min=1, help="Models to draw at random.")] = 500,
    preset: Annotated[str, typer.Option(help="What the models vary: smoke, laptop ...")] = "laptop",
    seed: Annotated[int, typer.Option(min=0, help="Of the drawing.")] = 0,
    workers: Annotated[int, typer.Option(help="Models at a time; -1 for one a core.")] = -1,
    backend: Annotated[str, typer.Option(help="local, or dask for a cluster.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of Dask's scheduler, such as tcp://127.0.0.1:8786.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Train and measure many models; can be stopped and started again at any moment."""
    from binding_lib.sweeps import run_sweep

    table = run_sweep(
        store, models, preset, seed, workers=workers, backend=backend, address=address
    )
    failed = int(table["error"].notna().sum())
    typer.echo(f"{len(table)} models in {store}, {failed} of them failed")
    _write_json(json_file, {"models": json.loads(table.to_json(orient="records"))})
    if failed == len(table):
        raise ValueError(f"every model failed, the first by {table['error'].iloc[0]}")


@app.command()
def sweep_status(
    store: Annotated[Path, typer.Argument(help="Folder of the rows.")],
    json_file: JsonFile = None,
) -> None:
    """How far is a sweep? Also while it runs."""
    from binding_lib.sweeps import sweep_status as status

    content = status(store)
    _print_table(pd.DataFrame([content]))
    _write_json(json_file, content)


@app.command()
def scoreboard(
    rerun: Annotated[
        str | None, typer.Option(metavar="CLAIM", help="Measure this claim anew, and compare.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Of a rerun's parts and tables; a later one goes on there.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Which claims of the paper hold here? All with our number, or one of them measured anew."""
    from binding_lib.claims import find_claim, load_claims
    from binding_lib.recorded import RECORD_VARIABLE
    from binding_lib.reruns import rerun_claim
    from binding_lib.scoreboard import number_text

    table = load_claims(rerun)
    numbers = [number_text(*row) for row in table[["value", "low", "high"]].itertuples(index=False)]
    shown = table[["name"]].assign(
        here=numbers, verdict=table["verdict"], published=table["published"]
    )
    content = {"claims": json.loads(table.to_json(orient="records", double_precision=15))}
    if rerun is not None:
        claim = find_claim(rerun)
        typer.echo(claim.statement.strip())
        if claim.rerun:
            typer.echo(f"$ {RECORD_VARIABLE}=FOLDER {claim.rerun}")
        measured = rerun_claim(claim, folder)
        shown = shown.rename(columns={"here": "recorded"}).assign(
            now=number_text(*measured), verdict=claim.verdict(measured)
        )
        content["now"] = {"value": measured.value, "verdict": claim.verdict(measured)}
    _print_table(shown)
    _write_json(json_file, content)


def _report(trained: Any, out: Path, columns: list[str], json_file: Path | None) -> None:
    """Print how a training ended; if it was stopped, exit with the status that shells give that."""
    last = trained.history[trained.history["step"] == trained.step]
    typer.echo(f"{trained.step} of {trained.training['steps']} steps; checkpoint in {out}")
    _print_table(last[columns])
    _write_json(json_file, {"coverage": trained.split.coverage, **trained.record()})
    if trained.step < trained.training["steps"]:
        raise typer.Exit(130)


def _overrides(texts: list[str] | None, **options: str) -> dict[str, Any]:
    """Read all of --set; ValueError if one names what a command has an option for."""
    overrides = dict(_setting(text) for text in texts or [])
    options |= {"coverage": "--coverage", "seed": "--seed", "folder": "--out"}
    for name in overrides:
        if name in options:
            raise ValueError(f"got --set {name}=..., expected the option {options[name]} for it")
    return overrides


def _setting(text: str) -> tuple[str, Any]:
    """Read "name=value": a number, true, null or other JSON; True, False, None; or a word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"expected --set NAME=VALUE, got {text!r}")
    value = {"True": "true", "False": "false", "None": "null"}.get(value, value)
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _print_table(table: pd.DataFrame) -> None:
    """Print a table with its column names; yes and no for truth values."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, column in enumerate(table.columns):
        shown.add_column(column, no_wrap=number == 0)  # names are there to be copied
    for row in table.itertuples(index=False):
        shown.add_row(*map(_cell, row))
    # A file or a pipe has no width to break lines at.
    width = None if sys.stdout.isatty() else 200
    Console(markup=False, highlight=False, width=width).print(shown)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _write_json(file: Path | None, content: dict[str, Any]) -> None:
    """Write one JSON object, if a file was asked for; it is there as a whole or not at all."""
    if file is None:
        return
    with atomic_path(file) as temporary:
        temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
