"""Two recipes judged by the models that their data trains; the search of a mixture."""
