-- Version 4: designs of more kinds, stages that were added later, blocks and whole plots.

ALTER TABLE studies ADD COLUMN design_details TEXT;
ALTER TABLE levels ADD COLUMN value REAL;
ALTER TABLE treatments ADD COLUMN stage INTEGER NOT NULL DEFAULT 0;
ALTER TABLE treatments ADD COLUMN block INTEGER;
ALTER TABLE treatments ADD COLUMN whole_plot INTEGER;
ALTER TABLE treatments ADD COLUMN centre INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stage INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN block INTEGER;
ALTER TABLE runs ADD COLUMN whole_plot INTEGER;

CREATE TABLE stages (
    stage INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    replicates_min INTEGER NOT NULL,
    replicates_max INTEGER NOT NULL,
    relative_half_width REAL,
    made TEXT NOT NULL
) STRICT;

CREATE TABLE stage_treatments (
    stage INTEGER NOT NULL REFERENCES stages,
    treatment INTEGER NOT NULL REFERENCES treatments,
    PRIMARY KEY (stage, treatment)
) STRICT, WITHOUT ROWID;
