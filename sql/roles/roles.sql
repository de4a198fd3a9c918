-- A role and a database for each service: psql runs this once, as the superuser, with the passwords in its environment.
-- Neither role can enter the other's database, create databases or roles, or read the server's files.
\getenv airflow_password AIRFLOW_DB_PASSWORD
\getenv ledger_password LEDGER_DB_PASSWORD

CREATE ROLE airflow LOGIN PASSWORD :'airflow_password' NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION;
CREATE ROLE ledger LOGIN PASSWORD :'ledger_password' NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION;
CREATE DATABASE airflow OWNER airflow;
CREATE DATABASE ledger OWNER ledger;
REVOKE ALL ON DATABASE airflow FROM PUBLIC;
REVOKE ALL ON DATABASE ledger FROM PUBLIC;
REVOKE ALL ON DATABASE postgres FROM PUBLIC;
REVOKE ALL ON DATABASE template1 FROM PUBLIC;
