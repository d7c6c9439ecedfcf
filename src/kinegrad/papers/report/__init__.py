"""What reproductions of papers share: a page, the folder it goes to, and a summary for the terminal."""
