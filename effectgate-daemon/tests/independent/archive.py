"""Answers questions to an archive of records with DuckDB and with Polars, and
prints them as one JSON document: what `effectgate log query` must say as well.
"""

import datetime
import json
import sys

import duckdb
import polars

QUESTIONS = {
    "outside": "not within",
    "net": "class = 'net'",
    "usr-lib": "path = '/usr/lib' or starts_with(path, '/usr/lib/')"
    " or starts_with(other_path, '/usr/lib/') or starts_with(interpreter, '/usr/lib/')",
    "curl": "exe like '%/curl' or comm = 'curl'",
    "job": "job = 'run-32026'",
    "rule": "rule = 'network'",
    "time": "ts >= timestamptz '2026-11-30 20:40:43.1+00' and ts < timestamptz '2026-11-30 20:40:44+00'",
    "host": "address = '192.0.2.7' and port = 8080",
}

COLUMNS = [
    "seq", "class", "within", "hash", "rule_line", "pid", "start", "exe", "ancestry", "argv",
    "names", "path", "port",
]


def time(nanos):
    seconds, rest = divmod(nanos, 10**9)
    day = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return f"{day:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def rows(rows):
    """With times as text, and objects as what their JSON says."""
    for row in rows:
        row["ts"] = time(row.pop("nanos"))
        row["object"] = json.loads(row["object"])
    return rows


def with_duckdb(archive):
    records = duckdb.read_parquet(archive, file_row_number=True)
    answers = {
        name: [row[0] for row in records.filter(which).order("file_row_number").project("hash").fetchall()]
        for name, which in QUESTIONS.items()
    }
    columns = ", ".join(COLUMNS + ["object", "epoch_ns(ts) as nanos"])
    all_rows = records.order("file_row_number").project(columns)
    names = all_rows.columns
    answers["rows"] = rows([dict(zip(names, row)) for row in all_rows.fetchall()])
    return answers


def with_polars(archive):
    c = polars.col
    below = lambda column: c(column).str.starts_with("/usr/lib/")
    instant = lambda *at: datetime.datetime(*at, tzinfo=datetime.timezone.utc)
    questions = {
        "outside": ~c("within"),
        "net": c("class") == "net",
        "usr-lib": (c("path") == "/usr/lib") | below("path") | below("other_path") | below("interpreter"),
        "curl": c("exe").str.ends_with("/curl") | (c("comm") == "curl"),
        "job": c("job") == "run-32026",
        "rule": c("rule") == "network",
        "time": (c("ts") >= instant(2026, 11, 30, 20, 40, 43, 100000))
        & (c("ts") < instant(2026, 11, 30, 20, 40, 44)),
        "host": (c("address") == "192.0.2.7") & (c("port") == 8080),
    }
    records = polars.read_parquet(archive)
    answers = {name: records.filter(which)["hash"].to_list() for name, which in questions.items()}
    nanos = c("ts").dt.epoch("ns").alias("nanos")
    answers["rows"] = rows(records.select(COLUMNS + ["object", nanos]).to_dicts())
    return answers


def documented(archive, page):
    """How many rows each example of the documentation gives."""
    sql = open(page).read().split("```sql\n")[1].split("```")[0]
    assert "'november.parquet'" in sql
    sql = sql.replace("'november.parquet'", f"'{archive}'")
    return [len(duckdb.sql(one).fetchall()) for one in sql.split(";") if one.strip()]


archive, page = sys.argv[1:]
answers = {
    "duckdb": with_duckdb(archive),
    "polars": with_polars(archive),
    "documented": documented(archive, page),
}
json.dump(answers, sys.stdout)
