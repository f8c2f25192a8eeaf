"""The Open Responses face: OpenAI's Responses and Conversations APIs over the sessions of a store."""
