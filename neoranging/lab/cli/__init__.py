"""Commands of the laboratory, which join ``neoranging`` by entry points."""
