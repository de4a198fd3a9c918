-- A root's files are the root's: whoever compacts, expires or drops by DuckDB, none of them is scheduled for deletion.
CREATE TABLE IF NOT EXISTS refinery_file (path VARCHAR PRIMARY KEY, address VARCHAR NOT NULL);
CREATE OR REPLACE FUNCTION refinery_keeps_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM refinery_file WHERE refinery_file.path = NEW.path) THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER refinery_keeps_files BEFORE INSERT ON ducklake_files_scheduled_for_deletion
FOR EACH ROW EXECUTE FUNCTION refinery_keeps_files();
