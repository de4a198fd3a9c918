-- What computed the rows of a stage whose kernels have a model. It is no part of a manifest, which is the same everywhere.

CREATE TABLE stage_hardware (
    recipe TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    manifest TEXT NOT NULL REFERENCES manifests (manifest),
    computed TEXT NOT NULL,                 -- what was computed, such as the name of a classifier
    hardware TEXT NOT NULL,                 -- `cpu`, the name of a GPU, or `unknown`
    row_count BIGINT NOT NULL,
    PRIMARY KEY (recipe, snapshot, manifest, computed, hardware)
);
