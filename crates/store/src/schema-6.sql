-- Version 6: runs in a lab of machines in user space.

CREATE TABLE labs (
    run_id INTEGER PRIMARY KEY REFERENCES runs,
    back_end TEXT NOT NULL,
    time TEXT NOT NULL,
    server TEXT NOT NULL,
    emulated INTEGER NOT NULL,
    image TEXT NOT NULL,
    wake_ups REAL NOT NULL
) STRICT;

CREATE TABLE lab_machines (
    run_id INTEGER NOT NULL REFERENCES labs,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    kernel TEXT NOT NULL,
    kernel_hash TEXT NOT NULL,
    kernel_origin TEXT NOT NULL,
    memory INTEGER NOT NULL,
    boot_ns INTEGER NOT NULL,
    console TEXT,
    PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;
