"""The command line: one module per command. Owns options, help, exit statuses; does no work itself."""
