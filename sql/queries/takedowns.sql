-- What was taken down, or allowed again, when and why?
SELECT root, number, entries, undo, reason, taken_down_at
FROM takedowns
ORDER BY root, number;
