"""One self-contained page that shows what matters of a recording, and hands it to the viewers."""
