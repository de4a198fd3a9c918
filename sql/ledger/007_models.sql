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

-- Who waited for whom where a stage computes with models: actors of Ray for tasks, or tasks for actors.
CREATE TABLE stage_models (
    recipe TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    manifest TEXT NOT NULL REFERENCES manifests (manifest),
    actors INTEGER NOT NULL,                -- most at once; 0 on engines without actors
    held_seconds DOUBLE PRECISION NOT NULL, -- of all actors, from their start or that of the work to its end
    idle_seconds DOUBLE PRECISION NOT NULL, -- of these, those in which an actor had no task
    open_seconds DOUBLE PRECISION NOT NULL, -- in which there was work for actors
    waited_seconds DOUBLE PRECISION NOT NULL, -- of these, those in which a task waited for an actor
    tasks_seconds DOUBLE PRECISION NOT NULL, -- of tasks, on every engine
    model_seconds DOUBLE PRECISION NOT NULL, -- of these, those in kernels: not loading, reading or writing
    PRIMARY KEY (recipe, snapshot, manifest)
);
