"""What pages show that have texts of documents, or lead to them."""
