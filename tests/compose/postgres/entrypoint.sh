#!/bin/sh
# As the official image: makes the database at the first start with POSTGRES_PASSWORD, runs /docker-entrypoint-initdb.d/*.sql
# on a server that only its socket reaches, and then listens everywhere.
set -eu
PATH="$(echo /usr/lib/postgresql/*/bin):$PATH"
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA"
    chown -R postgres:postgres "$PGDATA" /run/postgresql
    exec setpriv --reuid postgres --regid postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    : "${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}"
    echo "$POSTGRES_PASSWORD" > /tmp/password
    initdb --pgdata "$PGDATA" --username postgres --pwfile /tmp/password --auth-local trust --auth-host scram-sha-256 \
        --encoding UTF8 --locale C.UTF-8
    rm /tmp/password
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --pgdata "$PGDATA" --options "-c listen_addresses=''" --wait start
    for script in /docker-entrypoint-initdb.d/*.sql; do
        psql --set ON_ERROR_STOP=1 --username postgres --no-password --file "$script"
    done
    pg_ctl --pgdata "$PGDATA" --mode fast --wait stop
fi
exec postgres -D "$PGDATA" -c "listen_addresses=*"
