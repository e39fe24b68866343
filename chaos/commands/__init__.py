"""The command line: one module a command. Owns options, help, exit statuses; does no work itself."""
