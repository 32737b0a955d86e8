"""Results of Benchmaster as Arrow tables and pandas frames, with units and confidence intervals.

    import benchmaster
    benchmaster.means("results/quickstart")               # a row per treatment and response: mean, interval, unit
    benchmaster.effects("results/quickstart")             # a row per effect: what changes the response, with interval
    benchmaster.frame("results/quickstart", "intervals")  # any exported table as a pandas frame
    benchmaster.table("results/quickstart", "operations") # the same as an Arrow table

The tables and their columns are those of `benchmaster export` (docs/results.md, "Exported files"). Units of columns are in
`frame.attrs["units"]`, and in the metadata of an Arrow table's fields under `unit`. The program itself is part of this
package; `program()` is its path.
"""

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile

__all__ = ["Error", "arrow_tables", "effects", "frame", "means", "program", "table"]


class Error(Exception):
    """What the program said instead of an answer."""


def program():
    """The path of the program: of this installation, else the one in PATH."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    for scheme in schemes:
        path = os.path.join(sysconfig.get_path("scripts", scheme), "benchmaster")
        if os.access(path, os.X_OK):
            return path
    path = shutil.which("benchmaster")
    if path is None:
        raise Error("the program `benchmaster` is neither beside this Python nor in PATH")
    return path


def _run(*arguments):
    done = subprocess.run([program(), *map(os.fspath, arguments)], capture_output=True, text=True)
    # 1: the answer is there, and measured runs failed their own checks.
    if done.returncode not in (0, 1) or not done.stdout:
        raise Error(done.stderr.strip() or f"benchmaster ended with status {done.returncode}")
    return done.stdout


def _unit(column):
    """The unit of a column, from its name; None: a number without unit, a text, or the unit is in the column `unit`."""
    if column.endswith("_ns"):
        return "ns"
    if column == "bytes" or column.endswith("_bytes") or column.startswith("bytes_"):
        return "B"
    return {"bandwidth": "B/s", "throughput": "B/s", "elapsed": "ns"}.get(column)


def _with_units(arrow):
    import pyarrow

    def field(old):
        unit = _unit(old.name)
        return old.with_metadata({"unit": unit}) if unit else old

    return arrow.cast(pyarrow.schema([field(old) for old in arrow.schema]))


def arrow_tables(directory):
    """All exported tables of a results directory, by name, as Arrow tables."""
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as to:
        _run("export", directory, "--format", "parquet", "--output", to)
        names = sorted(name.removesuffix(".parquet") for name in os.listdir(to))
        read = {name: pyarrow.parquet.read_table(os.path.join(to, name + ".parquet")) for name in names}
    return {name: _with_units(arrow) for name, arrow in read.items()}


def table(directory, name="responses"):
    """One exported table as an Arrow table. Units are in the fields' metadata."""
    tables = arrow_tables(directory)
    if name not in tables:
        raise Error(f"no table `{name}`; available: {', '.join(tables)}")
    return tables[name]


def frame(directory, name="responses"):
    """One exported table as a pandas frame. Units are in `attrs["units"]`."""
    arrow = table(directory, name)
    pandas = arrow.to_pandas()
    pandas.attrs["units"] = {column: _unit(column) for column in pandas.columns if _unit(column)}
    return pandas


def _analysis(directory):
    return json.loads(_run("analyze", directory, "--json"))


def means(directory):
    """The mean of every response of every treatment, over its valid runs, with its confidence interval.

    Columns: treatment, label, one per factor, response, unit, n, mean, half_width, low, high, standard_deviation,
    no_interval (why there is none: one run has no interval). The level of confidence is in `attrs["confidence"]`.
    """
    import pandas

    analysis = _analysis(directory)
    rows = []
    for treatment in analysis["treatments"]:
        for response in treatment["responses"]:
            estimate = response["estimate"] or {}
            mean, half = estimate.get("mean"), estimate.get("half_width")
            known = mean is not None and half is not None
            rows.append({
                "treatment": treatment["index"],
                "label": treatment["label"],
                "response": response["name"],
                "unit": response["unit"],
                "n": estimate.get("n", 0),
                "mean": mean,
                "half_width": half,
                "low": mean - half if known else None,
                "high": mean + half if known else None,
                "standard_deviation": estimate.get("standard_deviation"),
                "no_interval": estimate.get("no_interval") or response["no_estimate"],
            })
    result = pandas.DataFrame(rows)
    runs = frame(directory, "responses")
    columns = list(runs.columns)
    factors = columns[columns.index("label") + 1 : columns.index("replicate")]
    if factors and rows:
        levels = runs[["treatment", *factors]].drop_duplicates("treatment")
        result = result.merge(levels, on="treatment", how="left")
        others = [column for column in result.columns if column not in ("treatment", "label", *factors)]
        result = result[["treatment", "label", *factors, *others]]
    result.attrs["confidence"] = analysis["confidence"]
    return result


def effects(directory):
    """The effects of the factors on the study's primary response, costliest first; empty without factors.

    Columns: term, name, response, unit, scale, effect, low, high, p, p_holm, significant. On the scale `log` an effect is a
    ratio: 2 doubles the response. On the scale `linear` it is the difference from the low level to the high one, in the unit of the response,
    and for terms of more than two levels the coefficient.
    """
    import pandas

    analysis = _analysis(directory)
    rows = []
    for term in (analysis["effects"] or {}).get("effects", []):
        ratio = term["ratio"]
        whole = term["effect"] is not None
        if ratio is not None:
            value, interval = ratio["value"], ratio["interval"]
        elif whole:
            value, interval = term["effect"], term["effect_interval"]
        else:
            value, interval = term["coefficient"], term["interval"]
        low, high = interval or (None, None)
        rows.append({
            "term": term["term"],
            "name": term["name"],
            "response": analysis["effects_on"],
            "unit": "ratio" if ratio is not None else analysis["effects_unit"],
            "scale": "log" if ratio is not None else "linear",
            "effect": value,
            "low": low,
            "high": high,
            "p": term["p"],
            "p_holm": term["p_holm"],
            "significant": term["significant"],
        })
    columns = ("term", "name", "response", "unit", "scale", "effect", "low", "high", "p", "p_holm", "significant")
    result = pandas.DataFrame(rows, columns=columns)
    result.attrs["confidence"] = analysis["confidence"]
    return result
