#!/bin/sh
# The first word is the folder of the objects, as RustFS takes it.
set -eu
export AWS_ACCESS_KEY_ID="$RUSTFS_ACCESS_KEY" AWS_SECRET_ACCESS_KEY="$RUSTFS_SECRET_KEY"
export BIND_HOST=0.0.0.0 GATEWAY_PORT=9000 SERVICES=s3,iam,sts S3_PERSIST=1 LOG_LEVEL=WARNING
export S3_DATA_DIR="$1/objects" STATE_DIR="$1/state"
exec /opt/venv/bin/python -m ministack
