"""The door from a shell: `binding-lib` parses, calls the library, prints a table or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from binding_lib.encoders import MissingExtraError, WeightsUnavailableError, list_encoders
from binding_lib.files import atomic_path


class _OneSentenceErrors(TyperGroup):
    """Prints what the library refuses as one sentence, with exit code 2 and no traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, WeightsUnavailableError, MissingExtraError) as error:
            typer.echo(f"binding-lib: {error}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(cls=_OneSentenceErrors, no_args_is_help=True, add_completion=False)

JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write everything printed, as JSON.")
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


def _print_table(table: pd.DataFrame) -> None:
    """Print a table with its column names; yes and no for truth values."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, column in enumerate(table.columns):
        shown.add_column(column, no_wrap=number == 0)  # names are there to be copied
    for row in table.itertuples(index=False):
        cells = [{True: "yes", False: "no"}[c] if isinstance(c, bool) else str(c) for c in row]
        shown.add_row(*cells)
    Console(markup=False, highlight=False).print(shown)


def _write_json(file: Path | None, content: dict[str, Any]) -> None:
    """Write one JSON object, if a file was asked for; it is there as a whole or not at all."""
    if file is None:
        return
    with atomic_path(file) as temporary:
        temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
