"""Tests of the data on which codecs are measured."""
