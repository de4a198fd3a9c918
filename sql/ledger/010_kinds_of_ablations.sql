-- What was compared: two arms that a person named (`comparison`), or a recipe and itself without a stage (`attribution`).

ALTER TABLE ablations ADD COLUMN kind TEXT NOT NULL DEFAULT 'comparison';
