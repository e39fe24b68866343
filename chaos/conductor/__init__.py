"""The conductor: starts everything, breaks it by schedule, heals it, collects the evidence, asks for the verdict."""
