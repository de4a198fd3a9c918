-- Which entries does each log of a root have, and what is the SHA-256 of each?
SELECT root, log, number, digest
FROM log_entries
WHERE :log = '' OR log = :log
ORDER BY root, log, number;
