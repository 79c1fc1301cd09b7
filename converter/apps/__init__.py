"""What a user starts: the command, the viewers' server, and many recordings at once."""
