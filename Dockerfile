# One image for every part of the system: Airflow's components, Spark's and Ray's nodes, and jobs. Driver and worker
# then have the same Python and the same packages by construction.
# The tag is for people; the digest decides.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
FROM ${PYTHON_IMAGE}

# Spark needs Java; procps gives its scripts `ps`; tini is `init: true` of compose.
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*

# An environment of our own: Debian's Python refuses packages beside its own.
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH

COPY requirements.txt /opt/refinery/requirements.txt
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /opt/refinery/requirements.txt

# The owner of these folders is the owner of the volumes that compose puts there.
RUN useradd --uid 50000 --gid 0 --create-home refinery \
    && mkdir -p /opt/airflow/logs /scratch \
    && chown -R 50000:0 /opt/airflow /scratch

COPY pyproject.toml setup.py README.md /opt/refinery/
COPY pipeline_tasks /opt/refinery/pipeline_tasks
COPY plugins /opt/refinery/plugins
COPY dags /opt/refinery/dags
COPY sql /opt/refinery/sql
COPY expectations /opt/refinery/expectations
COPY deploy/image /opt/refinery/deploy/image

# The code stays in its folder; this adds the entry points: Airflow's plugin, and the command `refinery`.
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation -e /opt/refinery

RUN python -m compileall -q /opt/refinery

ENV AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/refinery/dags \
    PYTHONPATH=/opt/refinery:/opt/refinery/plugins \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SPARK_CONF_DIR=/tmp/spark-conf \
    NUMBA_CACHE_DIR=/scratch/numba \
    ARROW_DEFAULT_MEMORY_POOL=system \
    TMPDIR=/scratch

# Loops are compiled here, for any processor of this level, so that no container has to; the entry point brings them to
# NUMBA_CACHE_DIR, where numba can add others. `generic` is for other architectures.
ARG KERNEL_CPU=x86-64-v3
ENV NUMBA_CPU_NAME=${KERNEL_CPU} \
    NUMBA_CPU_FEATURES=
RUN cd /opt/refinery && NUMBA_CACHE_DIR=/opt/refinery/numba python -m pipeline_tasks.cli compile \
    && rm -r /scratch/* # root's folder of temporary files, which no container could open

WORKDIR /opt/refinery
USER 50000:0
ENTRYPOINT ["/opt/refinery/deploy/image/entrypoint.sh"]
CMD ["python", "-m", "pipeline_tasks"]
