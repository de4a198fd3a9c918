#!/bin/sh
# Writes Spark's settings into SPARK_CONF_DIR, then runs the command. Spark reads its secret from a file alone, and
# neither the image nor the environment of other programs should have that file.
set -eu
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
