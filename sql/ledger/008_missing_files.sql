-- Promised files that a snapshot was refined without, as its recipe accepts a share of them (`accept_partial`).

CREATE TABLE missing_files (
    manifest TEXT NOT NULL REFERENCES manifests (manifest),
    file TEXT NOT NULL,
    PRIMARY KEY (manifest, file)
);
