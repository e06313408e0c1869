"""Put skills where assistants look for them, keep them current, and take them away again."""
