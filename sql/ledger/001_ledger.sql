-- The ledger: what was refined, at what cost, what gates decided, what was published.
-- One text for SQLite and PostgreSQL. Paths are relative to the root; times are ISO 8601 in UTC.

CREATE TABLE prices (
    resource TEXT PRIMARY KEY,              -- `cpu` or `gpu`
    usd_per_hour DOUBLE PRECISION NOT NULL
);

-- Where to start from: about a cloud's list price of one virtual core and of one H100-class GPU. Set what you pay.
INSERT INTO prices (resource, usd_per_hour) VALUES ('cpu', 0.05), ('gpu', 4.0);

CREATE TABLE manifests (
    manifest TEXT PRIMARY KEY,              -- path; its stage and fingerprint are in it
    stage TEXT NOT NULL,
    place INTEGER NOT NULL,                 -- rank of the stage in the order of stages
    fingerprint TEXT NOT NULL,
    version INTEGER NOT NULL,
    rows_in BIGINT NOT NULL,
    rows_kept BIGINT NOT NULL,
    rows_rejected BIGINT NOT NULL,
    rows_quarantined BIGINT NOT NULL,
    bytes_in BIGINT NOT NULL,
    bytes_out BIGINT NOT NULL,
    tokens BIGINT NOT NULL                  -- 0 before `tokenize`
);

CREATE TABLE stage_metrics (
    recipe TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    manifest TEXT NOT NULL REFERENCES manifests (manifest),
    engine TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    wall_seconds DOUBLE PRECISION NOT NULL,
    cpu_hours DOUBLE PRECISION NOT NULL,
    gpu_hours DOUBLE PRECISION NOT NULL,
    cost_usd DOUBLE PRECISION NOT NULL,     -- at the prices of the day
    recorded_at TEXT NOT NULL,
    PRIMARY KEY (recipe, snapshot, manifest)
);

CREATE TABLE rejections (
    manifest TEXT NOT NULL REFERENCES manifests (manifest),
    reason TEXT NOT NULL,                   -- `stage:why`, or `error:why` for quarantined records
    kind TEXT NOT NULL,                     -- `rejected` or `quarantined`
    rows_lost BIGINT NOT NULL,
    PRIMARY KEY (manifest, reason)
);

CREATE TABLE gate_verdicts (
    recipe TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    verdict TEXT NOT NULL,                  -- path of the verdict
    manifest TEXT NOT NULL,
    stage TEXT NOT NULL,
    place INTEGER NOT NULL,
    outcome TEXT NOT NULL,                  -- `pass`, `warn` or `refuse`
    override_reason TEXT NOT NULL,          -- why a person let refused data pass; empty if nobody did
    evaluated INTEGER NOT NULL,
    docs TEXT NOT NULL,                     -- path of the Data Docs page
    recorded_at TEXT NOT NULL,
    PRIMARY KEY (recipe, snapshot, verdict)
);

CREATE TABLE gate_failures (
    verdict TEXT NOT NULL,
    rank INTEGER NOT NULL,
    fact TEXT NOT NULL,
    severity TEXT NOT NULL,                 -- `critical` or `warning`
    observed DOUBLE PRECISION,
    least DOUBLE PRECISION,
    most DOUBLE PRECISION,
    why TEXT NOT NULL,
    PRIMARY KEY (verdict, rank)
);

CREATE TABLE dataset_versions (
    recipe TEXT NOT NULL,
    number INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    home TEXT NOT NULL,
    documents BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    sequences BIGINT NOT NULL,
    recorded_at TEXT NOT NULL,
    PRIMARY KEY (recipe, number)
);

CREATE TABLE version_manifests (
    recipe TEXT NOT NULL,
    number INTEGER NOT NULL,
    stage TEXT NOT NULL,
    manifest TEXT NOT NULL,
    PRIMARY KEY (recipe, number, stage)
);

CREATE INDEX stage_metrics_by_snapshot ON stage_metrics (snapshot, recipe);
CREATE INDEX gate_verdicts_by_manifest ON gate_verdicts (manifest);

-- The newest manifest of each stage of a snapshot: a changed recipe leaves the old one's manifests in the tables.
CREATE VIEW latest_stages AS
SELECT m.*, s.recipe, s.snapshot, s.engine, s.attempt, s.wall_seconds, s.cpu_hours, s.gpu_hours, s.cost_usd
FROM stage_metrics s
JOIN manifests m ON m.manifest = s.manifest
WHERE NOT EXISTS (
    SELECT 1
    FROM stage_metrics later
    JOIN manifests other ON other.manifest = later.manifest
    WHERE later.recipe = s.recipe AND later.snapshot = s.snapshot AND other.stage = m.stage
        AND (later.recorded_at > s.recorded_at OR (later.recorded_at = s.recorded_at AND later.manifest > s.manifest))
);

-- The newest verdict on each of those manifests.
CREATE VIEW latest_verdicts AS
SELECT v.*
FROM gate_verdicts v
JOIN latest_stages l ON l.recipe = v.recipe AND l.snapshot = v.snapshot AND l.manifest = v.manifest
WHERE NOT EXISTS (
    SELECT 1
    FROM gate_verdicts later
    WHERE later.recipe = v.recipe AND later.snapshot = v.snapshot AND later.manifest = v.manifest
        AND (later.recorded_at > v.recorded_at OR (later.recorded_at = v.recorded_at AND later.verdict > v.verdict))
);
