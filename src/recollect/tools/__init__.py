"""What the model may call: files, commands, memory, the history itself."""
