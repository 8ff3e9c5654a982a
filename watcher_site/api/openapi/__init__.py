"""The OpenAPI documents, and the page that shows them."""
