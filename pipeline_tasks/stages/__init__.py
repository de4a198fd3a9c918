"""One file per stage; each exports its card as `STAGE`.

Imports the vocabulary, `filters` and `text`; knows nothing of engines, storage or Airflow.
"""
