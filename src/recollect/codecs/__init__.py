"""What a view shows, in each provider's wire format and back."""
