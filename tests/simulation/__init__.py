"""A whole cluster in one process: the very code of the brokers over memory seams, in virtual time."""
