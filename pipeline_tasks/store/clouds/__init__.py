"""Objects of Google Cloud Storage and of Azure, through obstore."""
