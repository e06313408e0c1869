"""Experiment blueprints: read loosely written ones, write good ones, check both."""
