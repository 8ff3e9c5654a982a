"""The receiver that publishes to RabbitMQ."""
