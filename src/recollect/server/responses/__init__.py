"""The Open Responses face: OpenAI's Responses and Conversations APIs over our sessions."""
