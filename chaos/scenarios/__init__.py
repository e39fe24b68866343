"""Named scenarios: each a file with the schedule, the settings and the story of something that went wrong somewhere."""
