"""Tests of interfaces: command line, records, errors and exit codes."""
