"""The site's copy of a real cloud: its contents, and the rows written from them."""
