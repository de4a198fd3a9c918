"""What publishers say of the use of a page: header fields, markup and robots.txt, as signals; imports `text.base`."""
