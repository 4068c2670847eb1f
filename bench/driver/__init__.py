"""The driver of `script/bench`: runs mallocs side by side and prints who is faster, by how much, in how much memory."""
