"""Tests of the data that codecs are measured on."""
