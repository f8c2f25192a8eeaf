"""Messages of a view in each provider's wire format, and back."""
