"""The storing rows of the table "How we show it" (spec 5): each promise shown on real processes."""
