"""Tests the functions of the wheel on the results of `quick`: test.py DIRECTORY."""

import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import benchmaster

FACTORS = """
[study]
name = "sizes"
[target]
url = "nfs://{server}/export"
[factors.io_size]
parameter = "workload.read.io_size"
levels = ["4KiB", "64KiB"]
[design]
replicates = 2
[workload.read]
use = "random-read"
file_size = "1MiB"
duration = "200ms"
"""


def quick(directory):
    means = benchmaster.means(directory)
    assert means.attrs["confidence"] == 0.95
    rows = means[means.response == "sequential-write.throughput"]
    (row,) = rows.itertuples()
    assert (row.unit, row.n) == ("B/s", 5) and row.low < row.mean < row.high, row
    assert abs((row.high - row.low) / 2 - row.half_width) < 1e-6 * row.mean

    # The same mean as from the database, by hand.
    database = sqlite3.connect(f"file:{directory}/results.db?mode=ro", uri=True)
    (mean,) = database.execute(
        "SELECT avg(value) FROM run_responses WHERE response = ? AND severity IS NOT 'invalid'", (row.response,)
    ).fetchone()
    assert abs(mean - row.mean) < 1e-6 * mean, (mean, row.mean)

    operations = benchmaster.frame(directory, "operations")
    assert operations.attrs["units"]["p99_ns"] == "ns" and operations.attrs["units"]["bytes"] == "B"
    arrow = benchmaster.table(directory, "operations")
    assert arrow.schema.field("p99_ns").metadata == {b"unit": b"ns"} and arrow.num_rows == len(operations)
    assert benchmaster.effects(directory).empty

    for wrong in (lambda: benchmaster.table(directory, "none"), lambda: benchmaster.means("/nonexistent")):
        try:
            wrong()
        except benchmaster.Error as error:
            print(f"refused: {error}")
        else:
            raise AssertionError("no error")


def factors():
    with tempfile.TemporaryDirectory() as folder:
        study, results = Path(folder, "sizes.toml"), Path(folder, "results")
        study.write_text(FACTORS)
        subprocess.run([benchmaster.program(), "run", "--quiet", study, "-o", results], capture_output=True)
        means = benchmaster.means(results)
        assert set(means.io_size) == {"4KiB", "64KiB"}, means.columns
        (effect,) = benchmaster.effects(results).itertuples()
        assert effect.name == "io_size" and effect.low < effect.effect < effect.high, effect
        print(means[means.response.str.startswith("read.")][["io_size", "response", "mean", "low", "high", "unit"]].head(4))


quick(sys.argv[1])
factors()
