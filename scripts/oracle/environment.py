"""Imported before what the standard library does not have: where that is missing, the script ends with what to run."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
show_traceback = sys.excepthook


def say_what_to_run(kind, error, traceback):
    if not issubclass(kind, ModuleNotFoundError):
        show_traceback(kind, error, traceback)
        return
    print(f"{Path(sys.argv[0]).name}: no Python package '{error.name}' here. The oracles have an environment of their "
          f"own; make it, and run this in it:\n  python=$({HERE}/setup.sh)\n  $python {' '.join(sys.argv)}",
          file=sys.stderr)


sys.excepthook = say_what_to_run
