"""Families of generated text: each module turns a seeded random generator into examples of a few datasets.

A family's reply is a function of its question alone: no word of it is drawn, so that the best answer is one text, and a
model of a few million parameters can learn it.
"""
