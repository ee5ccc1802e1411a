"""Programs of the user's, instrumented, by JSON lines or as black boxes."""
