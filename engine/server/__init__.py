"""The HTTP server. Needs the `server` extra; nothing but the command that starts it imports it."""
