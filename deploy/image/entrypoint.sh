#!/bin/sh
# Writes Spark's settings into SPARK_CONF_DIR, brings the image's compiled loops to NUMBA_CACHE_DIR, then runs the command.
# Spark reads its secret from a file alone, and neither the image nor the environment of other programs should have it.
set -eu
for compiled in /opt/refinery/numba/*; do
    there="${NUMBA_CACHE_DIR:=/scratch/numba}/$(basename "$compiled")"
    if [ -d "$compiled" ] && [ ! -e "$there" ]; then
        mkdir -p "$NUMBA_CACHE_DIR"
        cp -R "$compiled" "$there.$$" # numba must never see half of a file
        mv -T "$there.$$" "$there" 2>/dev/null || rm -rf "$there.$$" # another container was faster
    fi
done
if [ -n "${SPARK_SECRET:-}" ]; then
    umask 077
    mkdir -p "$SPARK_CONF_DIR"
    {
        cat "$(dirname "$0")/spark-defaults.conf"
        echo "spark.authenticate.secret       $SPARK_SECRET"
        echo "spark.cores.max                 ${SPARK_APPLICATION_CORES:-2}"
    } > "$SPARK_CONF_DIR/spark-defaults.conf"
    umask 022
fi
exec "$@"
