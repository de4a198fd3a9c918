#!/bin/sh
# Writes Spark's settings into SPARK_CONF_DIR, brings the image's compiled loops to NUMBA_CACHE_DIR, then runs the command.
# Spark reads its secret from a file alone, and neither the image nor the environment of other programs should have it.
set -eu
bring() { # numba must never see half of a file
    mkdir -p "$NUMBA_CACHE_DIR" && cp -R "$1" "$2.$$" && mv -T "$2.$$" "$2"
}
for compiled in /opt/refinery/numba/*; do
    there="${NUMBA_CACHE_DIR:=/scratch/numba}/$(basename "$compiled")"
    if [ -d "$compiled" ] && [ ! -e "$there" ]; then
        bring "$compiled" "$there" 2>/dev/null || rm -rf "$there.$$" # another container was faster, or nothing can be kept
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
