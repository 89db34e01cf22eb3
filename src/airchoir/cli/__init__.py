"""The command line: parses, calls, prints. Bad input is one line and exit status 2, never a traceback."""

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import airchoir
import airchoir.cli.threads  # before what imports numpy
from airchoir.cli import bank, demo, doctor, evaluate, experiment, listing, privacy, report, sweep, train

_UsageError: type[Exception] = typer.BadParameter.__mro__[
    2
]  # ClickException, which typer's releases keep in different places
_INTERRUPTED = 130

app = typer.Typer(
    name="airchoir",
    help="Private ensemble inference over the air: many models answer at once, the channel adds them up.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.command("train", epilog=train.EXAMPLES)(train.train)
app.command("evaluate", epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command("experiment", epilog=experiment.EXAMPLES)(experiment.experiment)
app.command("sweep", epilog=sweep.EXAMPLES)(sweep.sweep)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.add_typer(privacy.app, name="privacy")
app.add_typer(bank.app, name="bank")
app.command("list", epilog=listing.EXAMPLES)(listing.show)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    """Private ensemble inference over the air: many models answer at once, the channel adds them up."""
    if version:
        typer.echo(f"airchoir {airchoir.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an output that cannot show "±" still gets its table
    try:
        status = app(args=None if arguments is None else list(arguments), prog_name="airchoir", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read our output has left
        return 1
    except _UsageError as error:
        return _complain(f"{_text(error)}; see airchoir --help")
    except ValueError as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename or 'the system'}: {error.strerror or error}; check the name and your rights")
    except ArithmeticError as error:
        return _complain(f"a number is too large or too small to calculate with ({error}); give a less extreme one")
    except MemoryError:
        return _complain("not enough memory for this; use fewer repeats, classes or queries at a time")
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    if status == _INTERRUPTED:  # which some of typer's releases raise and others return
        typer.echo("airchoir: interrupted", err=True)
    return status if isinstance(status, int) else 0


def _text(error: Exception) -> str:
    message: str = error.format_message() if hasattr(error, "format_message") else str(error)
    return message.rstrip(".")


def _complain(message: str) -> int:
    typer.echo("airchoir: " + " ".join(message.split()), err=True)
    return 2
