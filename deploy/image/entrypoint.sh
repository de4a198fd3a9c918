#!/bin/sh
# Writes Spark's settings into SPARK_CONF_DIR, brings the image's compiled loops to NUMBA_CACHE_DIR, then runs the command.
# Spark reads its secret from a file alone, and neither the image nor the environment of other programs should have it.
set -eu
bring() { # numba must never see half of a file; process ids are the same in all containers, and tell none apart
    mkdir -p "$NUMBA_CACHE_DIR" || return 0
    part=$(mktemp -d "$NUMBA_CACHE_DIR/.part-XXXXXXXX") || return 0
    cp -R --preserve=timestamps "$1" "$part/whole" && mv -T "$part/whole" "$2" || true # another container was faster
    rm -rf "$part"
}
for compiled in /opt/refinery/numba/*; do
    there="${NUMBA_CACHE_DIR:=/scratch/numba}/${compiled##*/}"
    if [ -d "$compiled" ] && [ ! -e "$there" ]; then
        bring "$compiled" "$there" 2>/dev/null
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
