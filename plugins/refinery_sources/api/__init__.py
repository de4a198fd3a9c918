"""APIs as sources: records that an API gives page by page, each exactly once, or none of them."""
