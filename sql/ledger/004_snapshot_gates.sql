-- A manifest may have two verdicts: the last one of a snapshot has that of its stage, and that of the whole snapshot.

DROP VIEW latest_verdicts;

-- The newest verdict of each gate on each of the newest manifests.
CREATE VIEW latest_verdicts AS
SELECT v.*
FROM gate_verdicts v
JOIN latest_stages l ON l.recipe = v.recipe AND l.snapshot = v.snapshot AND l.manifest = v.manifest
WHERE NOT EXISTS (
    SELECT 1
    FROM gate_verdicts later
    WHERE later.recipe = v.recipe AND later.snapshot = v.snapshot AND later.manifest = v.manifest
        AND later.stage = v.stage
        AND (later.recorded_at > v.recorded_at OR (later.recorded_at = v.recorded_at AND later.verdict > v.verdict))
);
